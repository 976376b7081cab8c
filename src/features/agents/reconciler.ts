/**
 * Applies what nodes report about sessions. Each session fact is handled in one transaction that changes the session, its
 * agent and the log together, and moves the session's fact cursor. Ingest passes them in order, and the end after the last byte.
 */

import type { Link, SessionEnd, SessionFact } from '../../core/node.ts';
import type { Exit } from '../../core/session.ts';
import type { SessionCursor, SpoolLoss } from '../../events/ingest/source.ts';
import { lastOutputText } from '../../store/event-rows/read.ts';
import { outputEnd, rebaseSpool, type SpoolRow, spoolsOf } from '../../store/event-rows/spools.ts';
import { writeForLink } from '../../store/links.ts';
import type { Tx } from '../../store/store.ts';
import type { AgentCore } from './core.ts';
import { limits } from './limits.ts';
import { pendingAfterEnd, pendingAfterStart } from './pending-state.ts';
import { progressAtEnd } from './progress.ts';
import { loadAcpState } from './queries/acp-state.ts';
import { findAgent, findSession, type SessionRow, updateAgent, updateSession } from './queries/agents.ts';
import { scheduleRestart } from './restarts.ts';
import { type AgentStatus, finalStatus } from './rules.ts';
import { isMeasured } from './summaries.ts';

export class Reconciler {
  readonly #core: AgentCore;

  constructor(core: AgentCore) {
    this.#core = core;
  }

  /** The committed cursor of a session that is still followed. */
  load(session_id: string, node_id: string): Promise<SessionCursor | null> {
    return this.#core.store.read(async (reader) => {
      const session = await findSession(reader, session_id);
      // A node is not trusted about sessions of other nodes.
      if (!session || session.state === 'ended' || session.node_id !== node_id) return null;
      const { stdout, stderr } = await spoolsOf(reader, session.num);
      const cursor = (spool: SpoolRow) => {
        const { offset, base, tail } = spool;
        return { offset, base, tail, output: outputEnd(spool) };
      };
      return {
        session_id,
        agent_id: session.agent_id,
        owner_id: (await findAgent(reader, session.agent_id))?.owner_id ?? '',
        streams: { stdout: cursor(stdout), stderr: cursor(stderr) },
        fact: session.fact,
        acp:
          session.protocol === 'acp'
            ? { spilling: (await loadAcpState(reader, session.num)).spilling }
            : null,
        redactor: await this.#core.secrets.redactorOf(reader, session_id),
      };
    });
  }

  /**
   * Applies a session fact. Idempotent: those up to the committed one are ignored, like those of a session that has ended. The end
   * counts whatever its number, because the node's disk may have lost facts that are committed here.
   */
  async reconcile(session_id: string, fact: SessionFact): Promise<void> {
    await this.#core.store.write(async (tx) => {
      const session = await findSession(tx, session_id);
      const { body } = fact;
      if (!session || session.state === 'ended') return;
      if (fact.number <= session.fact && body.kind !== 'ended') return;
      if (body.kind === 'started') await this.#started(tx, session, body.pid, body.started_at_ms);
      else if (body.kind === 'ended') await this.#ended(tx, session, body.end);
      else if (body.kind === 'trouble') {
        await this.#core.records.logError(
          tx,
          session.agent_id,
          session.id,
          body.code,
          body.error,
          body.details,
        );
        await this.#core.records.publish(tx, session.agent_id);
      }
      updateSession(tx, session.num, { fact: Math.max(fact.number, session.fact) });
      tx.wake('sessions', session_id);
    });
  }

  /**
   * Ends a session whose end no node will report, because its start was rejected or the node no longer has it. `link`: where
   * the node said so; throws like `writeForLink`.
   */
  async reconcileWithoutProcess(session_id: string, exit: Exit, link: Link | null): Promise<void> {
    await writeForLink(this.#core.store, link, (tx) => this.endWithoutProcess(tx, session_id, exit));
  }

  /** Like `reconcileWithoutProcess`, in a transaction. Does nothing for a session that has ended or is unknown. */
  async endWithoutProcess(tx: Tx, session_id: string, exit: Exit): Promise<void> {
    const session = await findSession(tx, session_id);
    if (!session || session.state === 'ended') return;
    const { stdout, stderr } = await spoolsOf(tx, session.num);
    await this.#ended(tx, session, {
      exit,
      sizes: { stdout: stdout.offset, stderr: stderr.offset },
      cleanup: null,
      leftovers: [],
      ended_at_ms: this.#core.clock.now(),
    });
    tx.wake('sessions', session_id);
  }

  /** Another program changed the spool file: continues with its new content, and logs that output may be missing. */
  async rebase(session_id: string, { stream, offset, link }: SpoolLoss): Promise<void> {
    await writeForLink(this.#core.store, link, async (tx) => {
      const session = await findSession(tx, session_id);
      if (!session || session.state === 'ended') return;
      await rebaseSpool(tx, session.num, stream, offset);
      await this.#core.records.logError(
        tx,
        session.agent_id,
        session.id,
        'output_truncated',
        `the ${stream} file was changed by another program; output between ${offset} and there may be missing`,
        { stream, offset },
      );
    });
  }

  async #started(tx: Tx, session: SessionRow, pid: number, started_at_ms: number): Promise<void> {
    if (session.state !== 'starting') return;
    const agent = (await findAgent(tx, session.agent_id))!;
    updateSession(tx, session.num, { state: 'running', pid, started_at: started_at_ms });
    const acp = session.protocol === 'acp';
    const activity = acp ? 'starting' : 'working';
    const status = await this.#core.records.changeStatus(tx, agent, session.id, 'running', { activity });
    updateAgent(tx, agent.num, {
      status,
      exit_code: null,
      exit_signal: null,
      reason: null,
      cleanup: null,
      progress: null,
      leftovers: '[]',
      ...pendingAfterStart(agent, session),
      started_at: started_at_ms,
      ended_at: null,
      archived_at: null,
      updated_at: this.#core.clock.now(),
    });
    if (acp || agent.run_num !== null) {
      const begun = { agent_id: agent.id, session_id: session.id };
      await this.#core.facts.record(tx, 'session_started', session.id, begun);
    }
    await this.#core.records.publish(tx, agent.id);
  }

  async #ended(tx: Tx, session: SessionRow, end: SessionEnd): Promise<void> {
    const agent = (await findAgent(tx, session.agent_id))!;
    const redactor = await this.#core.secrets.redactor(tx, session.id);
    const { message } = end.exit;
    // The message is redacted because runs publish it too.
    const exit = { ...end.exit, message: message === null ? null : (redactor?.text(message) ?? message) };
    const leftovers = JSON.stringify(end.leftovers);
    const to: AgentStatus = finalStatus(exit, session.stopping === 1);
    const reason = to === 'failed' ? exit.reason : null;
    if (reason && exit.message)
      await this.#core.records.logError(tx, agent.id, session.id, reason, exit.message);
    const failure = to === 'failed' ? (exit.message ?? (await lastErrors(tx, session))) : null;
    const shown = { exit_code: exit.exit_code, exit_signal: exit.exit_signal };
    const status = await this.#core.records.changeStatus(tx, agent, session.id, to, {
      ...(exit.exit_code !== null && { exit_code: exit.exit_code }),
      ...(exit.exit_signal !== null && { exit_signal: exit.exit_signal }),
      ...(reason !== null && { reason }),
    });
    updateSession(tx, session.num, {
      state: 'ended',
      ...shown,
      reason,
      cleanup: end.cleanup,
      ended_at: end.ended_at_ms,
    });
    updateAgent(tx, agent.num, {
      status,
      ...shown,
      reason,
      cleanup: end.cleanup,
      leftovers: redactor?.json(leftovers) ?? leftovers,
      sign_in_since: null,
      progress: progressAtEnd(agent.progress, failure),
      ...pendingAfterEnd(agent, session),
      ended_at: end.ended_at_ms,
      // It may never have run.
      archived_at: null,
      updated_at: this.#core.clock.now(),
    });
    if (status === 'failed')
      await scheduleRestart(this.#core, tx, agent, { ...session, ended_at: end.ended_at_ms });
    if (isMeasured(agent)) tx.afterCommit(() => this.#core.summaries.measure(agent.id));
    await this.#core.session.onExit(tx, session.id, exit);
    await this.#core.outbox.enqueue(tx, session.node_id, session.id, 'forget', {});
    await this.#core.facts.record(tx, 'session_ended', session.id, {
      agent_id: agent.id,
      session_id: session.id,
      status,
      message: exit.message,
      restart_decided: true,
    });
    await this.#core.records.publish(tx, agent.id);
  }
}

/** What the session wrote last to stderr. */
function lastErrors(tx: Tx, { num: session_num, agent_num }: SessionRow): Promise<string> {
  return lastOutputText(tx, { agent_num, session_num, stream: 'stderr' }, limits.failure_lines);
}
