/** SQL for the state of ACP sessions. */
import { type AcpState, initialState } from '../../../acp/state.ts';
import { preparedQuery } from '../../../store/prepared-query.ts';
import type { Reader, Tx } from '../../../store/store.ts';
import { limits } from '../limits.ts';

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

/** The stored state, or the initial one. */
export async function loadAcpState(reader: Reader, session_num: number): Promise<AcpState> {
  return toAcpState(session_num, (await reader.get(stateOf(reader, session_num)))?.state ?? null);
}

/**
 * The last states that were parsed, with their texts, by session. Most messages do not change the state, and parsing it
 * took a tenth of their transaction. Nothing can make an entry wrong, because it is used only for exactly its text.
 */
const parsed = new Map<number, { text: string; state: AcpState }>();

/** `text`: the row of a session; null if it has none. Fields that an earlier version did not store have initial values. */
export function toAcpState(session_num: number, text: string | null): AcpState {
  if (text === null) return initialState;
  const known = parsed.get(session_num);
  if (known?.text === text) return known.state;
  const state = { ...initialState, ...parseState(text) };
  parsed.delete(session_num);
  if (parsed.size >= limits.acp_states_parsed_max) parsed.delete(parsed.keys().next().value!);
  parsed.set(session_num, { text, state });
  return state;
}

export async function storeAcpState(tx: Tx, session_num: number, state: AcpState): Promise<void> {
  await tx.run(keep(tx, session_num, JSON.stringify(state)));
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
