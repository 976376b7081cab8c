/** The row of what is known of a session that speaks ACP. */
import { type AcpState, beginning } from '../acp/state.ts';
import type { Reader, Tx } from './store.ts';

/** Of a session of which nothing is stored yet: its beginning. */
export function loadAcpState(reader: Reader, session_num: number): AcpState {
  const row = reader.get(
    reader.sql.selectFrom('acp_states').select('state').where('session_num', '=', session_num),
  );
  return row ? (JSON.parse(row.state) as AcpState) : beginning;
}

export function storeAcpState(tx: Tx, session_num: number, state: AcpState): void {
  const text = JSON.stringify(state);
  tx.run(
    tx.sql
      .insertInto('acp_states')
      .values({ session_num, state: text })
      .onConflict((conflict) => conflict.column('session_num').doUpdateSet({ state: text })),
  );
}
