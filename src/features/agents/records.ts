/** The records of agents: finds them for a caller, publishes their changes, and appends events to their logs. */

import { keepJson } from '../../base/kept-json.ts';
import { type Action, authorize, decide, type Owned } from '../../core/policy.ts';
import { problems } from '../../core/problem.ts';
import { agentResource } from '../../store/resources.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Caller } from '../accounts/rules.ts';
import type { Core } from '../feature.ts';
import { limits } from './limits.ts';
import { type AgentRow, activity, deleteAgent, findAgent, toAgent } from './queries/agents.ts';
import { type Agent, type AgentStatus, transition } from './rules.ts';

/** The columns of an agent that was never started. */
export function newAgentDefaults(now: number) {
  const counts = { session_count: 0, restart_count: 0 };
  return { status: 'created' as const, leftovers: '[]', ...counts, created_at: now, updated_at: now };
}

/** Whether the agent has a session that is not known to have ended. */
export function isLive(row: AgentRow): boolean {
  return row.session_state === 'starting' || row.session_state === 'running';
}

/**
 * Whether the restart policy applies to the agent. Never to a member of a team, whose run decides about its attempts; an
 * earlier release accepted a policy for one.
 */
export function restartsOnFailure({ restart_policy, member_id }: AgentRow): boolean {
  return restart_policy === 'on_failure' && member_id === null;
}

type UsedCore = Pick<Core, 'clock' | 'events' | 'feed' | 'store' | 'timers'>;

/** What is kept of an agent until the next commit. */
interface ReadAgent {
  row: AgentRow;
  resource: Owned;
  agent: Agent;
}

export class AgentRecords {
  readonly #core: UsedCore;

  constructor(core: UsedCore) {
    this.#core = core;
  }

  /** The record as clients see it. */
  toAgent(row: AgentRow): Agent {
    return toAgent(row, this.#core.clock.now(), limits.quiet_after_ms);
  }

  /** Throws `agent not found` if the agent does not exist or the caller may not read it, and a 403 if only `action` is denied. */
  async find(reader: Reader, caller: Caller, action: Action, agent_id: string): Promise<AgentRow> {
    const row = await this.mustFind(reader, agent_id);
    authorize(caller, action, await agentResource(reader, row), problems.agentNotFound);
    return row;
  }

  /**
   * The record as clients see it. Throws like `find`. `action`: of the request. A token that may change an agent gets its
   * record even without the scope to read it.
   *
   * Row, access and record are read once per commit; the policy and the time since the last event are checked every
   * time. The query and its 43 columns took a third of the processor time of `GET /api/agents/{id}`.
   */
  read(caller: Caller, action: Action, agent_id: string): Promise<Agent> | Agent {
    const known = this.#core.store.cachedRead(`agent ${agent_id}`, async (reader) => {
      const row = await this.mustFind(reader, agent_id);
      return { row, resource: await agentResource(reader, row), agent: keepJson(this.toAgent(row)) };
    });
    return known instanceof Promise
      ? known.then((read) => this.#show(read, caller, action))
      : this.#show(known, caller, action);
  }

  #show(known: ReadAgent, caller: Caller, action: Action): Agent {
    authorize(caller, action, known.resource, problems.agentNotFound);
    const now_activity = activity(known.row, this.#core.clock.now(), limits.quiet_after_ms);
    if (now_activity !== known.agent.activity) {
      known.agent = keepJson({ ...known.agent, activity: now_activity });
    }
    return known.agent;
  }

  /** Whether the policy allows the caller to take this action on the agent. */
  async may(reader: Reader, caller: Caller, action: Action, row: AgentRow): Promise<boolean> {
    return decide(caller, action, await agentResource(reader, row)) === 'allow';
  }

  /** Finds an agent without authorization. Throws `agent not found`. */
  async mustFind(reader: Reader, agent_id: string): Promise<AgentRow> {
    const row = await findAgent(reader, agent_id);
    if (!row) throw problems.agentNotFound();
    return row;
  }

  /** Publishes the record to streams. Call it last in a transaction. */
  async publish(tx: Tx, agent_id: string): Promise<void> {
    const row = await this.mustFind(tx, agent_id);
    await this.#core.feed.append(tx, 'agent', row.owner_id, { ...this.toAgent(row) }, row.team_num, agent_id);
  }

  /** Deletes the record with the log and the restart timer, and publishes the deletion. */
  async remove(tx: Tx, row: AgentRow): Promise<void> {
    const { timers, events, feed } = this.#core;
    const record = { ...this.toAgent(row), deleted: true };
    await timers.clear(tx, 'agent_restart', row.id);
    await events.drop(tx, row.num);
    await deleteAgent(tx, row.num);
    await feed.append(tx, 'agent', row.owner_id, record, row.team_num, row.id);
  }

  /**
   * Appends the status event of a transition and returns the new status. The caller updates the row. Throws if it is
   * illegal.
   */
  async changeStatus(
    tx: Tx,
    row: AgentRow,
    session_id: string,
    to: AgentStatus,
    fields: Record<string, unknown>,
  ): Promise<AgentStatus> {
    const from = row.status;
    const status = transition(from, to);
    const ts_ms = this.#core.clock.now();
    await this.#core.events.append(tx, row.id, [
      { type: 'status', session_id, ts_ms, fields: { status, previous_status: from, ...fields } },
    ]);
    return status;
  }

  /** Appends an `error` event. */
  async logError(
    tx: Tx,
    agent_id: string,
    session_id: string | null,
    code: string,
    error: string,
    details: object = {},
  ): Promise<void> {
    const ts_ms = this.#core.clock.now();
    await this.#core.events.append(tx, agent_id, [
      { type: 'error', session_id, ts_ms, fields: { code, error, ...details } },
    ]);
  }
}
