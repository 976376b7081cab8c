/** Who this plane is: an id made with the database, written into every session that it starts. */
import { newId } from '../base/ids.ts';
import type { Store } from '../store/store.ts';

const KEY = 'plane_id';

export function planeId(store: Store): Promise<string> {
  return store.write((tx) => {
    const known = tx.get(tx.sql.selectFrom('meta').select('value').where('key', '=', KEY));
    if (known) return known.value;
    const value = newId('pln');
    tx.run(tx.sql.insertInto('meta').values({ key: KEY, value }));
    return value;
  });
}
