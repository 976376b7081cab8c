/** What the agents' room works with, and what its parts share: publishing a changed record, and waiting for a change. */
import type { Clock } from '../../base/clock.ts';
import { limits } from '../../base/limits.ts';
import type { Logger } from '../../base/log.ts';
import { type Agent, type AgentStatus, transition } from '../../domain/agent.ts';
import type { Node } from '../../domain/node.ts';
import { type Action, authorize, decide } from '../../domain/policy.ts';
import { problems } from '../../domain/problem.ts';
import type { Exit } from '../../domain/session.ts';
import type { Caller } from '../../domain/user.ts';
import type { Feed } from '../../events/feed.ts';
import type { EventLog } from '../../events/log.ts';
import type { Facts } from '../../flow/facts.ts';
import type { Outbox } from '../../flow/outbox.ts';
import { type AgentRow, deleteAgent, findAgent, toAgent } from '../../store/agents.ts';
import type { Reader, Store, Tx } from '../../store/store.ts';
import type { Timers } from '../../timers/timers.ts';
import type { Audit } from '../audit.ts';
import type { IdempotencyKeys } from '../idempotency.ts';
import { agentResource } from '../resources.ts';
import type { Secrets } from './secrets.ts';

export interface Errand {
  env: Record<string, string>;
  /** Null: it takes no step. */
  step_input: string | null;
}

export interface AgentsOptions {
  store: Store;
  log: EventLog;
  feed: Feed;
  facts: Facts;
  outbox: Outbox;
  timers: Timers;
  audit: Audit;
  idempotency: Pick<IdempotencyKeys, 'keepWith'>;
  clock: Clock;
  logger: Logger;
  plane_id: string;
  /** What a session proves itself with to the actor surface; null while that is switched off. */
  actorToken(session_id: string): string | null;
  secrets: Secrets;
  /** Null for a node that is not registered. */
  node(id: string): Node | null;
  /** What is still to be said to a session before it is stopped. */
  farewell(tx: Tx, session_id: string): void;
  /** What a session gets beside its agent's own, because it takes a step. */
  errand(reader: Reader, session_id: string): Errand;
  /** A session has ended, and its directory is about to go: what is to be read from there is said here. */
  ended(tx: Tx, session_id: string, exit: Exit): void;
  /** A node says how much of what was said to a session is in its stdin. */
  reached(session_id: string, stdin_bytes: number): Promise<void>;
}

/** Who does something: a signed-in caller, or the service itself (restart policy, adoption). */
export interface Doer {
  user_id: string | null;
  ip: string | null;
}
export const SERVICE: Doer = { user_id: null, ip: null };

/** The columns of an agent that has no life yet. */
export function unlived(now: number) {
  const counts = { session_count: 0, restart_count: 0 };
  return { status: 'created', leftovers: '[]', ...counts, created_at: now, updated_at: now };
}

/** No request waits for the agent's node. */
export const nothingPending = { pending: null, pending_request: null } as const;

/** Whether the agent has a session that is not known to be over. */
export function isLive(row: AgentRow): boolean {
  return row.session_state === 'starting' || row.session_state === 'running';
}

/** Inside a transaction: the agent's record goes, with its log and whatever is due for it. */
export function removeRecord(context: AgentsContext, tx: Tx, row: AgentRow): void {
  const { timers, log, feed } = context.options;
  const record = { ...context.record(row), deleted: true };
  timers.clear(tx, 'agent_restart', row.id);
  log.drop(tx, row.num);
  deleteAgent(tx, row.num);
  feed.append(tx, 'agent', row.owner_id, record, row.team_num, row.id);
}

export class AgentsContext {
  readonly options: AgentsOptions;
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(options: AgentsOptions) {
    this.options = options;
  }

  now(): number {
    return this.options.clock.now();
  }

  node(id: string): Node {
    const node = this.options.node(id);
    if (!node) throw problems.nodeNotFound();
    return node;
  }

  record(row: AgentRow): Agent {
    return toAgent(row, this.now(), limits.quiet_after_ms);
  }

  /** Finds an agent that the caller may treat so; another's is as good as none. */
  find(reader: Reader, caller: Caller, action: Action, agent_id: string): AgentRow {
    const row = this.mustFind(reader, agent_id);
    authorize(caller, action, agentResource(reader, row), problems.agentNotFound);
    return row;
  }

  /** Whether the policy lets a caller do something with an agent. */
  may(reader: Reader, caller: Caller, action: Action, row: AgentRow): boolean {
    return decide(caller, action, agentResource(reader, row)) === 'allow';
  }

  mustFind(reader: Reader, agent_id: string): AgentRow {
    const row = findAgent(reader, agent_id);
    if (!row) throw problems.agentNotFound();
    return row;
  }

  /** Tells the fleet stream what the record is now. Call it last in a transaction. */
  publish(tx: Tx, agent_id: string): void {
    const row = this.mustFind(tx, agent_id);
    this.options.feed.append(tx, 'agent', row.owner_id, { ...this.record(row) }, row.team_num, agent_id);
  }

  /** Appends the status event of a transition; throws on an illegal one. The caller updates the row. */
  changeStatus(
    tx: Tx,
    row: AgentRow,
    session_id: string,
    to: AgentStatus,
    fields: Record<string, unknown>,
  ): AgentStatus {
    const from = row.status as AgentStatus;
    const status = transition(from, to);
    this.options.log.append(tx, row.id, [
      { type: 'status', session_id, ts_ms: this.now(), fields: { status, previous_status: from, ...fields } },
    ]);
    return status;
  }

  error(
    tx: Tx,
    agent_id: string,
    session_id: string | null,
    code: string,
    error: string,
    details: object = {},
  ): void {
    this.options.log.append(tx, agent_id, [
      { type: 'error', session_id, ts_ms: this.now(), fields: { code, error, ...details } },
    ]);
  }

  /** Tells whoever waits for a session that something about it was committed. */
  changed(session_id: string): void {
    for (const wake of this.#waiting.get(session_id) ?? []) wake();
  }

  /** Resolves when `check` answers true on committed rows; looks again at each change of the session. */
  async until(session_id: string, check: (reader: Reader) => boolean, timeout_ms: number): Promise<boolean> {
    const waiters = this.#waiting.get(session_id) ?? new Set();
    this.#waiting.set(session_id, waiters);
    const deadline = performance.now() + timeout_ms;
    try {
      for (;;) {
        let wake = () => {};
        const woken = new Promise<void>((resolve) => {
          wake = resolve;
        });
        waiters.add(wake);
        try {
          if (await this.options.store.read(check)) return true;
          const left_ms = deadline - performance.now();
          if (left_ms <= 0) return false;
          const timer = setTimeout(wake, left_ms);
          await woken;
          clearTimeout(timer);
        } finally {
          waiters.delete(wake);
        }
      }
    } finally {
      if (waiters.size === 0) this.#waiting.delete(session_id);
    }
  }
}
