/**
 * What a node observed becomes true here: each fact of a session is one transaction that changes the session, its agent
 * and the log together, and moves the session's fact cursor. Ingest calls it in order, the end after the last byte.
 */
import type { AgentStatus } from '../../domain/agent.ts';
import { finalStatus } from '../../domain/agent.ts';
import type { StreamName } from '../../domain/event.ts';
import type { SessionEnd, SessionFact } from '../../domain/node.ts';
import type { Exit } from '../../domain/session.ts';
import type { SessionCursor } from '../../ingest/ingest.ts';
import { loadAcpState } from '../../store/acp.ts';
import {
  type AgentRow,
  findAgent,
  findSession,
  rebaseSpool,
  type SessionRow,
  type SpoolRow,
  spoolsOf,
  updateAgent,
  updateSession,
} from '../../store/agents.ts';
import type { Tx } from '../../store/store.ts';
import { type AgentsContext, nothingPending } from './context.ts';

/** Whether a start that is kept follows this session's end. A session that never ran was that start. */
function isStillOwed({ pending, pending_request }: AgentRow, { state }: SessionRow): boolean {
  return pending_request !== null && pending !== 'stop' && state !== 'starting';
}

export class Settlement {
  readonly #context: AgentsContext;

  constructor(context: AgentsContext) {
    this.#context = context;
  }

  /** The committed cursor of a session that is still followed. */
  load(session_id: string, node_id: string): Promise<SessionCursor | null> {
    return this.#context.options.store.read((reader) => {
      const session = findSession(reader, session_id);
      // What a node says of another node's session is not listened to.
      if (!session || session.state === 'ended' || session.node_id !== node_id) return null;
      const { stdout, stderr } = spoolsOf(reader, session.num);
      const cursor = ({ offset, base, tail, output }: SpoolRow) => ({
        ...{ offset, base, tail },
        output: output ?? offset,
      });
      return {
        session_id,
        agent_id: session.agent_id,
        streams: { stdout: cursor(stdout), stderr: cursor(stderr) },
        fact: session.fact,
        acp: session.protocol === 'acp' ? { spilling: loadAcpState(reader, session.num).spilling } : null,
        redactor: this.#context.options.secrets.redactorOf(reader, session_id),
      };
    });
  }

  async settle(session_id: string, fact: SessionFact): Promise<void> {
    await this.#context.options.store.write((tx) => {
      const session = findSession(tx, session_id);
      if (!session || session.state === 'ended' || fact.number <= session.fact) return;
      const { body } = fact;
      if (body.kind === 'started') this.#started(tx, session, body.pid, body.started_at_ms);
      else if (body.kind === 'ended') this.#ended(tx, session, body.end);
      else if (body.kind === 'trouble') {
        this.#context.error(tx, session.agent_id, session.id, body.code, body.error, body.details);
        this.#context.publish(tx, session.agent_id);
      }
      updateSession(tx, session.num, { fact: fact.number });
      tx.afterCommit(() => this.#context.changed(session_id));
    });
  }

  /** An end that no process reached or that no node can tell: refused before the spawn, or lost. */
  async settleWithoutProcess(session_id: string, exit: Exit): Promise<void> {
    await this.#context.options.store.write((tx) => this.endWithoutProcess(tx, session_id, exit));
  }

  /** The same inside a transaction. Does nothing for a session that is over, or unknown. */
  endWithoutProcess(tx: Tx, session_id: string, exit: Exit): void {
    const session = findSession(tx, session_id);
    if (!session || session.state === 'ended') return;
    const { stdout, stderr } = spoolsOf(tx, session.num);
    this.#ended(tx, session, {
      exit,
      sizes: { stdout: stdout.offset, stderr: stderr.offset },
      cleanup: null,
      leftovers: [],
      ended_at_ms: this.#context.now(),
    });
    tx.afterCommit(() => this.#context.changed(session_id));
  }

  async rebase(session_id: string, stream: StreamName): Promise<void> {
    await this.#context.options.store.write((tx) => {
      const session = findSession(tx, session_id);
      if (!session) return;
      const spool = rebaseSpool(tx, session.num, stream);
      this.#context.error(
        tx,
        session.agent_id,
        session.id,
        'output_truncated',
        `the ${stream} file was changed behind our back; output between ${spool.offset} and there may be missing`,
        { stream, offset: spool.offset },
      );
    });
  }

  #started(tx: Tx, session: SessionRow, pid: number, started_at_ms: number): void {
    if (session.state !== 'starting') return;
    const agent = findAgent(tx, session.agent_id)!;
    updateSession(tx, session.num, { state: 'running', pid, started_at: started_at_ms });
    const acp = session.protocol === 'acp';
    const activity = acp ? 'starting' : 'working';
    const status = this.#context.changeStatus(tx, agent, session.id, 'running', { activity });
    updateAgent(tx, agent.num, {
      status,
      exit_code: null,
      exit_signal: null,
      reason: null,
      cleanup: null,
      leftovers: '[]',
      // A stop that came in between is still to be carried out.
      ...(agent.pending !== 'stop' && nothingPending),
      started_at: started_at_ms,
      ended_at: null,
      updated_at: this.#context.now(),
    });
    if (acp || agent.run_num !== null) {
      const begun = { agent_id: agent.id, session_id: session.id };
      this.#context.options.facts.record(tx, 'session_started', session.id, begun);
    }
    this.#context.publish(tx, agent.id);
  }

  #ended(tx: Tx, session: SessionRow, end: SessionEnd): void {
    const agent = findAgent(tx, session.agent_id)!;
    const redactor = this.#context.options.secrets.redactor(tx, session.id);
    const told = end.exit.message;
    // What a shell says of a failed start goes to runs too.
    const exit = { ...end.exit, message: told === null ? null : (redactor?.text(told) ?? told) };
    const leftovers = JSON.stringify(end.leftovers);
    const to: AgentStatus = finalStatus(exit, session.stopping === 1);
    const reason = to === 'failed' ? exit.reason : null;
    if (reason && exit.message) this.#context.error(tx, agent.id, session.id, reason, exit.message);
    const shown = { exit_code: exit.exit_code, exit_signal: exit.exit_signal };
    const status = this.#context.changeStatus(tx, agent, session.id, to, {
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
      ...(!isStillOwed(agent, session) && nothingPending),
      ended_at: end.ended_at_ms,
      updated_at: this.#context.now(),
    });
    this.#context.options.ended(tx, session.id, exit);
    this.#context.options.outbox.enqueue(tx, session.node_id, session.id, 'forget', {});
    this.#context.options.facts.record(tx, 'session_ended', session.id, {
      agent_id: agent.id,
      session_id: session.id,
      status,
      started_at_ms: session.started_at,
      message: exit.message,
    });
    this.#context.publish(tx, agent.id);
  }
}
