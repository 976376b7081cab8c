/** The row of what is known of a session that speaks ACP. */
import { type AcpState, beginning } from '../acp/state.ts';
import { built } from './built.ts';
import type { Reader, Tx } from './store.ts';

const stateOf = built((sql, session_num: number) =>
  sql.selectFrom('acp_states').select('state').where('session_num', '=', session_num),
);
const keep = built((sql, session_num: number, state: string) =>
  sql
    .insertInto('acp_states')
    .values({ session_num, state })
    .onConflict((conflict) => conflict.column('session_num').doUpdateSet({ state })),
);

/** Of a session of which nothing is stored yet: its beginning. What an earlier release did not store is as in the beginning. */
export function loadAcpState(reader: Reader, session_num: number): AcpState {
  const row = reader.get(stateOf(reader, session_num));
  return row ? { ...beginning, ...(JSON.parse(row.state) as Partial<AcpState>) } : beginning;
}

export function storeAcpState(tx: Tx, session_num: number, state: AcpState): void {
  tx.run(keep(tx, session_num, JSON.stringify(state)));
}
