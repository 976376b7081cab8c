/**
 * Carries out the intents of sessions on their nodes. `lifecycle.ts` decides to start and stop agents; this only applies how the
 * node answered: it does not answer, has refused a start, or has no such session.
 */
import { failpoint } from '../../base/failpoint.ts';
import type { Link, StopReport } from '../../core/node.ts';
import { explainRefusal, isTemporary, isUnreachable, Problem, problems } from '../../core/problem.ts';
import type { Ingest } from '../../events/ingest/ingest.ts';
import { writeForLink } from '../../store/links.ts';
import { explainFailure } from '../../work/failures.ts';
import type { Intent, IntentHandlers } from '../../work/outbox.ts';
import type { AgentCore } from './core.ts';
import { getPermissionEnv } from './creation.ts';
import { isStarting, type Lifecycle } from './lifecycle.ts';
import { limits } from './limits.ts';
import { pendingState, toColumns } from './pending-state.ts';
import { assertWorkdirAccess } from './placement.ts';
import { findSession, listSessions, type SessionRow, updateAgent } from './queries/agents.ts';
import type { Reconciler } from './reconciler.ts';
import { restartsOnFailure } from './records.ts';
import { hasCode, hasSession, isUnknownSession } from './session-errors.ts';

export class SessionDispatch {
  readonly #core: AgentCore;
  readonly #lifecycle: Lifecycle;
  readonly #reconciler: Reconciler;
  readonly #ingest: (node_id: string) => Ingest | null;

  constructor(
    core: AgentCore,
    lifecycle: Lifecycle,
    reconciler: Reconciler,
    ingest: (node_id: string) => Ingest | null,
  ) {
    this.#core = core;
    this.#lifecycle = lifecycle;
    this.#reconciler = reconciler;
    this.#ingest = ingest;
  }

  intentHandlers(): Pick<IntentHandlers, 'start' | 'stop' | 'input' | 'forget'> {
    return {
      start: (intent) => this.#start(intent),
      stop: (intent) => this.#stop(intent.lane, intent.payload.grace_ms),
      input: async ({ lane: session_id, payload }) => {
        const session = await this.#findLive(session_id);
        if (!session) throw problems.agentNotRunning();
        const node = this.#core.nodes.get(session.node_id);
        const data = Buffer.from(payload.data, 'base64');
        const length = await node
          .input(session_id, payload.offset, data, payload.eof)
          .catch((error: unknown) => {
            // The stop, which comes after it, must not wait for input that the node cannot store.
            throw session.stopping === 1 && hasCode(error, problems.inputNotStored().code)
              ? problems.agentNotRunning()
              : error;
          });
        failpoint('stdin_written');
        await this.#core.session.onStdinWritten(session_id, length);
        return length;
      },
      forget: async ({ node_id, lane: session_id }) => {
        try {
          await this.#core.nodes.get(node_id).forget(session_id);
        } catch (error) {
          if (!isUnknownSession(error)) throw error;
        }
      },
    };
  }

  async #start(intent: Intent<'start'>): Promise<void> {
    const { lane: session_id } = intent;
    const starting = await this.#findLive(session_id);
    if (starting?.state === 'starting' && !starting.stopping) await this.#reach(starting, 'start');
    const found = await this.#core.store.read(async (reader) => {
      const session = await findSession(reader, session_id);
      // If a stop was accepted before the start reached the node, the stop's intent ends the session.
      return session?.state === 'starting' && !session.stopping
        ? {
            session,
            agent: await this.#core.records.mustFind(reader, session.agent_id),
            environment: await this.#core.session.environment(reader, session_id),
          }
        : null;
    });
    if (!found) return;
    const { session, agent, environment } = found;
    const node = this.#core.nodes.get(agent.node_id);
    const { link } = node;
    const actor_token = this.#core.secrets.actorToken(session_id);
    try {
      // The agent counts as live from here on, so nobody else gets a worktree at its path.
      await assertWorkdirAccess(this.#core, agent).catch(async (error: unknown) => {
        // A retried start continues with the process of the first try.
        if (!(await hasSession(node, session_id))) throw error;
      });
      const view = await node.start({
        session_id,
        plane_id: this.#core.plane_id,
        agent_id: agent.id,
        agent_name: agent.name,
        owner_id: agent.owner_id,
        workdir: agent.workdir,
        preset: agent.preset,
        team_id: agent.state_team,
        argv: agent.argv === null ? ['/bin/sh', '-c', agent.command] : JSON.parse(agent.argv),
        env: { ...getPermissionEnv(agent), ...JSON.parse(agent.env), ...environment.env },
        stdin: agent.stdin === 1,
        on_exit: agent.on_exit as 'kill' | 'keep',
        ...(actor_token !== null && { actor_token }),
        ...(environment.step_input !== null && { step_input: environment.step_input }),
      });
      this.#ingest(agent.node_id)?.follow(session_id, view.facts);
    } catch (error) {
      if (error instanceof Problem && error.kind === 'invalid') {
        const exit = {
          exit_code: null,
          exit_signal: null,
          reason: 'workdir_refused',
          message: explainRefusal(error),
        } as const;
        return this.#reconciler.reconcileWithoutProcess(session_id, exit, link);
      }
      if (isUnreachable(error)) await this.#stall(session, 'start');
      else if (intent.payload.waits && isTemporary(error)) await this.#showWait(intent, session, error);
      else if (error instanceof Problem && !error.is_of_store)
        await this.#recordRefusal(intent, session, error, link);
      throw error;
    }
  }

  async #stop(session_id: string, grace_ms: number): Promise<StopReport> {
    const no_processes = { cleanup: null, survivors: [] };
    const session = await this.#findLive(session_id);
    if (!session) return no_processes;
    await this.#reach(session, 'stop');
    if ((await this.#findLive(session_id))?.stopping !== 1) return no_processes;
    const node = this.#core.nodes.get(session.node_id);
    const { link } = node;
    try {
      return await node.stop(session_id, grace_ms);
    } catch (error) {
      // It has ended meanwhile.
      if (!(await this.#findLive(session_id))) return no_processes;
      if (isUnreachable(error)) await this.#stall(session, 'stop');
      if (!isUnknownSession(error)) throw error;
      // The start never reached the node, or the node lost the session: it will not report an end.
      const exit = { exit_code: null, exit_signal: null, reason: null, message: null };
      await this.#reconciler.reconcileWithoutProcess(session_id, exit, link);
      return no_processes;
    }
  }

  /** Throws if the node does not answer. Nothing is sent to such a node, because a command in transit cannot be withdrawn. */
  async #reach(session: SessionRow, kind: 'start' | 'stop'): Promise<void> {
    try {
      await this.#core.nodes.get(session.node_id).reach();
    } catch (error) {
      if (isUnreachable(error)) await this.#stall(session, kind);
      throw error;
    }
  }

  /** Nothing ──▶ stalled, unless the node has answered in the meantime. */
  async #stall({ agent_id, id: session_id }: SessionRow, kind: 'start' | 'stop'): Promise<void> {
    const { store, records, clock } = this.#core;
    await store.write(async (tx) => {
      const row = await records.mustFind(tx, agent_id);
      if (row.session_id !== session_id || pendingState(row).is !== 'nothing') return;
      if (!(await this.#lifecycle.isUnanswered(tx, row, kind))) return;
      updateAgent(tx, row.num, { ...toColumns({ is: 'stalled', kind }), updated_at: clock.now() });
      await records.publish(tx, agent_id);
    });
  }

  /** Reports a start that waits, once it has failed several times. */
  async #showWait({ failure, lane: session_id }: Intent<'start'>, { agent_id }: SessionRow, error: unknown) {
    const is_of_store = error instanceof Problem && error.is_of_store;
    if ((failure?.count ?? 0) < limits.hidden_start_failures || is_of_store) return;
    const waiting = { agent_id, session_id, reason: `the agent cannot start yet: ${explainFailure(error)}` };
    await this.#core.store.write(async (tx) => {
      if (await isStarting(tx, session_id))
        await this.#core.facts.record(tx, 'acp_waits', session_id, waiting);
    });
  }

  /** Undoes a start that the node refused before it created anything. */
  async #recordRefusal(
    intent: Intent<'start'>,
    session: SessionRow,
    { code, message }: Problem,
    link: Link | null,
  ): Promise<void> {
    const { agent_id } = session;
    const { records } = this.#core;
    await writeForLink(this.#core.store, link, async (tx) => {
      // It must not be repeated: a later request may use the same id for its session.
      await this.#core.outbox.complete(tx, intent);
      const current = await findSession(tx, session.id);
      if (current?.state !== 'starting') return;
      const row = await records.mustFind(tx, agent_id);
      await this.#lifecycle.undoStart(tx, row, session, message);
      if (intent.payload.logs) await records.logError(tx, agent_id, null, code, message);
      // The restart policy still applies to the previous session, unless the agent is archived or was stopped meanwhile.
      const [previous] = await listSessions(tx, row.num, { limit: 1 });
      const restarts = restartsOnFailure(row) && row.archived_at === null && current.stopping === 0;
      if (previous && row.status === 'failed' && restarts) {
        const due_at = this.#core.clock.now() + limits.restart_backoff_ms_max;
        await this.#core.timers.set(tx, 'agent_restart', agent_id, due_at, { session_id: previous.id });
      }
      await records.publish(tx, agent_id);
    });
  }

  async #findLive(session_id: string): Promise<SessionRow | null> {
    const session = await this.#core.store.read((reader) => findSession(reader, session_id));
    return session && session.state !== 'ended' ? session : null;
  }
}
