/**
 * Notifies agents of their mail: one prompt when the agent is idle, never during a turn, and never in addition to a
 * step. Each message causes one prompt. Everything follows from rows and facts, so after a crash an agent is notified
 * exactly once.
 */
import { newId } from '../../base/ids.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { FactHandlers } from '../../work/facts.ts';
import type { TimerHandlers } from '../../work/timers.ts';
import { memberActorId } from '../actors/rules/actor.ts';
import { AcpTransaction } from '../agents/acp-transaction.ts';
import type { AgentCore } from '../agents/core.ts';
import { loadAcpState } from '../agents/queries/acp-state.ts';
import { type AgentRow, findAgent, findSession, runningMember } from '../agents/queries/agents.ts';
import { sendNext } from '../conversations/driver.ts';
import { isApplying } from '../conversations/permission-mode.ts';
import { countOpenPrompts, findPrompt, queuePrompt } from '../conversations/queries.ts';
import { findRun, parseSpec, type RunRow, runOfNum } from '../runs/queries/runs.ts';
import { hasLaunched } from '../runs/queries/steps.ts';
import { isRunOver } from '../runs/rules/run.ts';
import { limits } from './limits.ts';
import { mailToMention } from './queries/mail.ts';
import type { Mailbox } from './service.ts';

export class Waking {
  readonly #core: AgentCore;
  readonly #mailbox: Mailbox;

  constructor(core: AgentCore, mailbox: Mailbox) {
    this.#core = core;
    this.#mailbox = mailbox;
  }

  facts(): FactHandlers {
    return {
      mail_sent: (tx, { payload: { run_num, to_actor_id } }) =>
        this.#promptIfIdle(tx, run_num, to_actor_id.slice(0, to_actor_id.lastIndexOf('@'))),
      session_ready: (tx, { payload }) => this.#promptAgentIfIdle(tx, payload.agent_id),
      turn_ended: (tx, { payload }) => this.#promptAgentIfIdle(tx, payload.agent_id),
      turn_began: async (tx, { payload: { agent_id, prompt_id } }) => {
        const agent = await findAgent(tx, agent_id);
        const run = agent && agent.run_num !== null ? await runOfNum(tx, agent.run_num) : undefined;
        if (run)
          await this.#mailbox.promptSent(tx, run, memberActorId(agent!.member_id!, run.team_id), prompt_id);
      },
      run_changed: async (tx, { payload }) => {
        const run = await findRun(tx, payload.run_id);
        if (run) await this.#mailbox.endStaleMail(tx, run);
      },
    };
  }

  timers(): Pick<TimerHandlers, 'mail_look' | 'mail_unacknowledged'> {
    return {
      mail_look: (tx, { payload }) => this.#promptIfIdle(tx, payload.run_num, payload.member_id),
      mail_unacknowledged: (tx, { ref }) => this.#mailbox.overdue(tx, Number(ref)),
    };
  }

  async #promptAgentIfIdle(tx: Tx, agent_id: string): Promise<void> {
    const agent = await findAgent(tx, agent_id);
    if (agent && agent.run_num !== null) await this.#promptIfIdle(tx, agent.run_num, agent.member_id!);
  }

  /** Prompts the member's agent if it is idle and has mail of which it was not notified. */
  async #promptIfIdle(tx: Tx, run_num: number, member_id: string): Promise<void> {
    const run = await runOfNum(tx, run_num);
    if (!run || isRunOver(run)) return;
    const actor_id = memberActorId(member_id, run.team_id);
    if ((await mailToMention(tx, run, actor_id, 1))[0]?.status !== 'pending') return;
    const agent = await runningMember(tx, run_num, member_id);
    if (!agent || !(await isIdle(tx, agent))) return;
    if (await isTaken(tx, run, member_id)) {
      // Its prompt does not exist yet, or its outcome is not recorded. No fact reports when that is over.
      const due_at = this.#core.clock.now() + limits.mail_check_ms;
      const ref = `${run_num}/${member_id}`;
      await this.#core.timers.set(tx, 'mail_look', ref, due_at, { run_num, member_id });
      return;
    }
    const id = newId('prm');
    const text = (await this.#mailbox.pendingMail(tx, run, actor_id, id))!;
    const content = [{ type: 'text', text }];
    await queuePrompt(tx, agent.num, { id, content, created_by: null, created_at: this.#core.clock.now() });
    await AcpTransaction.run(this.#core, tx, agent.session_id!, sendNext);
    // If it has to wait after all, the fact `turn_began` reports when it is sent.
    const prompt = await findPrompt(tx, agent.num, id);
    if (prompt?.state === 'sent') await this.#mailbox.promptSent(tx, run, actor_id, id);
  }
}

/** Whether a prompt that is queued now is sent at once. If not, a fact reports when it would be. */
async function isIdle(reader: Reader, agent: AgentRow): Promise<boolean> {
  if (agent.protocol !== 'acp' || agent.session_state !== 'running') return false;
  const session = (await findSession(reader, agent.session_id!))!;
  if (session.stopping === 1 || session.stdin_lost === 1) return false;
  const state = await loadAcpState(reader, session.num);
  if (state.phase !== 'ready' || state.turn !== null || state.work.busy) return false;
  return !isApplying({ session, state }) && (await countOpenPrompts(reader, agent.num)) === 0;
}

/** Whether the member has a current step or, as the leader, a current round. */
async function isTaken(reader: Reader, run: RunRow, member_id: string): Promise<boolean> {
  const leads = parseSpec(run).leader_member_id === member_id;
  return (leads && run.leader === 'asking') || (await hasLaunched(reader, run.num, member_id));
}
