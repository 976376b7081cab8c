/**
 * Shared parts of permission reviews and elicitations. Both are requests of an agent that wait in a table until a user
 * answers them, and both answers are written to the agent's stdin.
 */
import { limits } from '../../base/limits.ts';
import { type Page, type PageRequest, page, readCursor } from '../../core/page.ts';
import type { View } from '../../core/policy.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { AgentCore } from '../agents/core.ts';
import { findSession } from '../agents/queries/agents.ts';

export interface AgentRequestFilter<Status> {
  /** Only requests of agents in this view. Default: all. */
  view?: View | undefined;
  status?: Status | undefined;
  agent_id?: string | undefined;
  before_num?: number | undefined;
  limit?: number | undefined;
}

/**
 * A page of requests, newest first. Without a limit and a cursor: at most one page of any, and further pending ones, up to
 * `limits.plain_list_items_max` in all. `list` returns rows, newest first.
 */
export async function pageOfRequests<Status extends string, Row extends { num: number }, Item>(
  list: (filter: AgentRequestFilter<Status | 'pending'>) => Promise<Row[]>,
  filter: AgentRequestFilter<Status>,
  request: PageRequest,
  shape: (row: Row) => Item,
): Promise<Page<Item>> {
  const keyOf = (row: Row) => [row.num];
  if (request.limit !== undefined || request.cursor !== undefined) {
    const limit = request.limit ?? limits.page_items_default;
    const before_num = readCursor(request.cursor, 'number')?.[0];
    return page(await list({ ...filter, before_num, limit: limit + 1 }), limit, shape, keyOf);
  }
  const newest = await list({ ...filter, limit: limits.page_items_max });
  const is_complete = newest.length < limits.page_items_max;
  if (is_complete || (filter.status ?? 'pending') !== 'pending') return { items: newest.map(shape) };
  const before_num = newest.at(-1)!.num;
  const limit = limits.plain_list_items_max;
  const older = await list({ ...filter, status: 'pending', before_num, limit: limit + 1 - newest.length });
  return page([...newest, ...older], limit, shape, keyOf);
}

/**
 * Marks answers as delivered when `length` bytes of the session's stdin have been written. `queued` returns the answers of a
 * session that have not been delivered yet.
 */
export async function markDelivered<Row extends { stdin_end: number | null }>(
  { store }: AgentCore,
  session_id: string,
  length: number,
  {
    queued,
    mark,
  }: { queued(reader: Reader, session_num: number): Promise<Row[]>; mark(tx: Tx, row: Row): Promise<void> },
): Promise<void> {
  const arrived = async (reader: Reader) => {
    const session = await findSession(reader, session_id);
    const rows = session ? await queued(reader, session.num) : [];
    return rows.filter(({ stdin_end }) => stdin_end !== null && stdin_end <= length);
  };
  if ((await store.read(arrived)).length === 0) return;
  await store.write(async (tx) => {
    for (const row of await arrived(tx)) await mark(tx, row);
  });
}
