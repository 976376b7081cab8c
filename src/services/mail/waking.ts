/**
 * Agents hear of their mail: one prompt when the agent is idle, never in the middle of a turn and never beside a step of
 * its own. Each message wakes once. Everything follows from rows and facts, so a crash anywhere wakes neither twice nor
 * never.
 */
import { newId } from '../../base/ids.ts';
import { limits } from '../../base/limits.ts';
import { actorIdOf } from '../../domain/actor.ts';
import { isRunOver } from '../../domain/run.ts';
import type { FactHandlers } from '../../flow/facts.ts';
import { loadAcpState } from '../../store/acp.ts';
import { type AgentRow, findAgent, findSession, runningMember } from '../../store/agents.ts';
import { mailToName } from '../../store/mail.ts';
import { countOpenPrompts, queuePrompt } from '../../store/prompts.ts';
import { findRun, hasLaunched, type RunRow, runOfNum, specOf } from '../../store/runs.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { TimerHandlers } from '../../timers/timers.ts';
import { sendNext } from '../acp/driver.ts';
import { Exchange } from '../acp/exchange.ts';
import type { AgentsContext } from '../agents/context.ts';
import type { Mailbox } from './mailbox.ts';

export class Waking {
  readonly #context: AgentsContext;
  readonly #mailbox: Mailbox;

  constructor(context: AgentsContext, mailbox: Mailbox) {
    this.#context = context;
    this.#mailbox = mailbox;
  }

  facts(): FactHandlers {
    return {
      mail_sent: (tx, { payload: { run_num, to_actor_id } }) =>
        this.#look(tx, run_num, to_actor_id.slice(0, to_actor_id.lastIndexOf('@'))),
      session_ready: (tx, { payload }) => this.#lookAt(tx, payload.agent_id),
      turn_ended: (tx, { payload }) => this.#lookAt(tx, payload.agent_id),
      turn_began: (tx, { payload: { agent_id, prompt_id } }) => {
        const agent = findAgent(tx, agent_id);
        const run = agent && agent.run_num !== null ? runOfNum(tx, agent.run_num) : undefined;
        if (run) this.#mailbox.told(tx, run, actorIdOf(agent!.member_id!, run.team_id), prompt_id);
      },
      run_changed: (tx, { payload }) => {
        const run = findRun(tx, payload.run_id);
        if (run) this.#mailbox.bury(tx, run);
      },
    };
  }

  timers(): Pick<TimerHandlers, 'mail_look' | 'mail_unacknowledged'> {
    return {
      mail_look: (tx, { payload }) => this.#look(tx, payload.run_num, payload.member_id),
      mail_unacknowledged: (tx, { ref }) => this.#mailbox.overdue(tx, Number(ref)),
    };
  }

  #lookAt(tx: Tx, agent_id: string): void {
    const agent = findAgent(tx, agent_id);
    if (agent && agent.run_num !== null) this.#look(tx, agent.run_num, agent.member_id!);
  }

  /** Wakes the member's agent where it is idle and there is something that it has not heard of. */
  #look(tx: Tx, run_num: number, member_id: string): void {
    const run = runOfNum(tx, run_num);
    if (!run || isRunOver(run)) return;
    const actor_id = actorIdOf(member_id, run.team_id);
    if (mailToName(tx, run, actor_id, 1)[0]?.status !== 'pending') return;
    const agent = runningMember(tx, run_num, member_id);
    if (!agent || !isIdle(tx, agent)) return;
    if (isTaken(tx, run, member_id)) {
      // Its prompt is not there yet, or its outcome is not written down: no fact tells when that is over.
      const due_at = this.#context.now() + limits.mail_look_ms;
      const ref = `${run_num}/${member_id}`;
      this.#context.options.timers.set(tx, 'mail_look', ref, due_at, { run_num, member_id });
      return;
    }
    const id = newId('prm');
    const text = this.#mailbox.pendingWords(tx, run, actor_id, id)!;
    const content = [{ type: 'text', text }];
    queuePrompt(tx, agent.num, { id, content, created_by: null, created_at: this.#context.now() });
    Exchange.run(this.#context, tx, agent.session_id!, sendNext);
    this.#mailbox.told(tx, run, actor_id, id);
  }
}

/** Whether a prompt that is queued now is sent at once. */
function isIdle(reader: Reader, agent: AgentRow): boolean {
  if (agent.protocol !== 'acp' || agent.session_state !== 'running') return false;
  const session = findSession(reader, agent.session_id!)!;
  if (session.stopping === 1 || session.stdin_lost === 1) return false;
  const { phase, turn } = loadAcpState(reader, session.num);
  return phase === 'ready' && turn === null && countOpenPrompts(reader, agent.num) === 0;
}

/** Whether the member has a step, or a round as the leader, that it was given. */
function isTaken(reader: Reader, run: RunRow, member_id: string): boolean {
  const leads = specOf(run).leader_member_id === member_id;
  return (leads && run.leader === 'asking') || hasLaunched(reader, run.num, member_id);
}
