/** SQL for the state of ACP sessions. */
import { type AcpState, initialState } from '../../../acp/state.ts';
import { preparedQuery } from '../../../store/prepared-query.ts';
import type { Reader, Tx } from '../../../store/store.ts';

const stateOf = preparedQuery((sql, session_num: number) =>
  sql.selectFrom('acp_states').select('state').where('session_num', '=', session_num),
);
const keep = preparedQuery((sql, session_num: number, state: string) =>
  sql
    .insertInto('acp_states')
    .values({ session_num, state })
    .onConflict((conflict) => conflict.column('session_num').doUpdateSet({ state })),
);

/** The keys under which earlier versions stored fields, with the current names. */
const renamed = [
  ['asking_count', 'received_count'],
  ['asking', 'received'],
] as const;

/** The stored state, or the initial one. Fields that an earlier version did not store have their initial values. */
export function loadAcpState(reader: Reader, session_num: number): AcpState {
  const row = reader.get(stateOf(reader, session_num));
  return row ? { ...initialState, ...parseState(row.state) } : initialState;
}

export function storeAcpState(tx: Tx, session_num: number, state: AcpState): void {
  tx.run(keep(tx, session_num, JSON.stringify(state)));
}

function parseState(text: string): Partial<AcpState> {
  const stored = JSON.parse(text) as Record<string, unknown>;
  for (const [before, after] of renamed) {
    if (!(before in stored)) continue;
    stored[after] = stored[before];
    delete stored[before];
  }
  return stored;
}
