/**
 * Shared parts of permission reviews and elicitations. Both are requests of an agent that wait in a table until a user
 * answers them, and both answers are written to the agent's stdin.
 */
import type { RequestId } from '../../acp/message.ts';
import { limits } from '../../base/limits.ts';
import { type Page, type PageRequest, page, readCursor } from '../../core/page.ts';
import { type Action, authorize, type View } from '../../core/policy.ts';
import type { Problem } from '../../core/problem.ts';
import { reviewResource } from '../../store/resources.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Caller } from '../accounts/rules.ts';
import type { AcpTransaction } from '../agents/acp-transaction.ts';
import type { AgentCore } from '../agents/core.ts';
import { findSession } from '../agents/queries/agents.ts';
import type { AuditEvent } from '../audit/rules/audit.ts';
import { limits as reviewLimits } from './limits.ts';
import { deleteUnansweredRequests, type ReviewRow } from './queries.ts';

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

/** The columns of both kinds that are used here. */
type RequestRow = Pick<
  ReviewRow,
  | ('num' | 'id' | 'request_id' | 'agent_id' | 'session_id' | 'answered_by' | 'stdin_end')
  | ('owner_id' | 'team_num' | 'team_id')
>;

/** How the two kinds differ. */
interface RequestKind<Row> {
  /** Begins the code of its error and the name of its id: `review_undeliverable`, `review_id`. */
  name: 'review' | 'elicitation';
  table: 'reviews' | 'elicitations';
  notFound(): Problem;
  undeliverable_event: AuditEvent;
  /** What the audit record of an undeliverable answer says about the answer. */
  answerOf(row: Row): object;
  find(reader: Reader, id: string): Promise<Row | undefined>;
  /** Pending requests of a session, oldest first. `request_id`: only those with this id, as JSON. */
  pending(reader: Reader, agent_num: number, session_num: number, request_id?: string): Promise<Row[]>;
  /** Requests of a session whose answers are not delivered yet. */
  queued(reader: Reader, session_num: number): Promise<Row[]>;
  update(tx: Tx, num: number, changes: { delivery: 'written' | 'undeliverable' }): Promise<void>;
  /** Ends a pending request without an answer, and publishes it. */
  cancel(core: AgentCore, tx: Tx, row: Row): Promise<void>;
  /** Publishes the current request on the fleet feed. */
  publish(core: AgentCore, tx: Tx, id: string): Promise<void>;
}

/** What happens to requests of one kind, independent of what they ask. */
export class AgentRequests<Row extends RequestRow> {
  readonly #kind: RequestKind<Row>;

  constructor(kind: RequestKind<Row>) {
    this.#kind = kind;
  }

  /** Throws a 404, also for a request that the caller may not see. */
  async mustFind(reader: Reader, caller: Caller, action: Action, id: string): Promise<Row> {
    const { find, notFound } = this.#kind;
    const row = await find(reader, id);
    if (!row) throw notFound();
    authorize(caller, action, await reviewResource(reader, row), notFound);
    return row;
  }

  /** Marks answers as delivered when `length` bytes of the session's stdin have been written. */
  async markDelivered(core: AgentCore, session_id: string, length: number): Promise<void> {
    const { queued, update, publish } = this.#kind;
    const arrived = async (reader: Reader) => {
      const session = await findSession(reader, session_id);
      const rows = session ? await queued(reader, session.num) : [];
      return rows.filter(({ stdin_end }) => stdin_end !== null && stdin_end <= length);
    };
    if ((await core.store.read(arrived)).length === 0) return;
    await core.store.write(async (tx) => {
      for (const row of await arrived(tx)) {
        await update(tx, row.num, { delivery: 'written' });
        await publish(core, tx, row.id);
      }
    });
  }

  /**
   * Handles a withdrawal by the agent: ends the request if it is pending or its answer has not been delivered. A request is
   * only identified by its id, so an agent that has used an id twice withdraws both requests.
   */
  async withdraw(transaction: AcpTransaction, id: RequestId): Promise<void> {
    const { tx, agent, session, core } = transaction;
    const request_id = JSON.stringify(id);
    for (const row of await this.#kind.pending(tx, agent.num, session.num, request_id)) {
      await this.#kind.cancel(core, tx, row);
    }
    for (const row of await this.#kind.queued(tx, session.num)) {
      if (row.request_id !== request_id) continue;
      transaction.error(...this.#undeliverable(row));
      await this.#markUndeliverable(core, tx, row, 'the agent withdrew the request');
    }
    transaction.publishAtEnd();
  }

  /** Closes all requests of a session that has ended, because nothing waits for their answers any longer. */
  async abandon(core: AgentCore, tx: Tx, agent_num: number, session_num: number): Promise<void> {
    for (const row of await this.#kind.pending(tx, agent_num, session_num)) {
      await this.#kind.cancel(core, tx, row);
    }
    await this.deleteOld(tx, agent_num);
    for (const row of await this.#kind.queued(tx, session_num)) {
      await core.records.logError(tx, row.agent_id, row.session_id, ...this.#undeliverable(row));
      await this.#markUndeliverable(core, tx, row, 'the agent ended');
    }
  }

  /** Deletes all but the newest that ended without an answer. */
  deleteOld(tx: Tx, agent_num: number): Promise<void> {
    return deleteUnansweredRequests(tx, this.#kind.table, agent_num, reviewLimits.unanswered_requests_max);
  }

  #undeliverable({ id, answered_by }: Row): [code: string, error: string, details: object] {
    const { name } = this.#kind;
    const by = answered_by === null ? '' : ` of ${answered_by}`;
    return [`${name}_undeliverable`, `the answer${by} did not reach the agent`, { [`${name}_id`]: id }];
  }

  async #markUndeliverable(core: AgentCore, tx: Tx, row: Row, why: string): Promise<void> {
    const { name, update, undeliverable_event, answerOf, publish } = this.#kind;
    await update(tx, row.num, { delivery: 'undeliverable' });
    await core.audit.record(tx, {
      event: undeliverable_event,
      level: 'warn',
      agent_id: row.agent_id,
      user_id: null,
      ip: null,
      details: { [`${name}_id`]: row.id, answered_by: row.answered_by, ...answerOf(row), why },
    });
    await publish(core, tx, row.id);
  }
}
