/**
 * How what a run has to do is carried out: each effect becomes rows and intents in the transaction of its cause. The
 * intents do the rest (`preparing.ts`), and what comes of it comes back as facts (`outcomes.ts`).
 */
import { idFrom } from '../../base/ids.ts';
import type { Effect } from '../../domain/run.ts';
import { memberKind } from '../../domain/team.ts';
import { liveAgentsOfRun } from '../../store/agents.ts';
import { findAttempt, findStep, hasAttempts, insertAttempt, type RunRow, specOf } from '../../store/runs.ts';
import type { Tx } from '../../store/store.ts';
import type { TimerHandlers } from '../../timers/timers.ts';
import type { AgentsContext } from '../agents/context.ts';
import type { Attempts } from './attempts.ts';

export class Execution {
  readonly #context: AgentsContext;
  readonly #attempts: Attempts;

  constructor(context: AgentsContext, attempts: Attempts) {
    this.#context = context;
    this.#attempts = attempts;
  }

  execute(tx: Tx, run: RunRow, effects: readonly Effect[]): void {
    const begins = effects.some(({ kind }) => kind === 'launch' || kind === 'ask_leader');
    // Agents of an earlier attempt of the run know things that this one must not.
    if (begins && run.attempt > 1 && !hasAttempts(tx, run)) this.#endAgents(tx, run);
    for (const effect of effects) this.#execute(tx, run, effect);
  }

  timers(): Pick<TimerHandlers, 'step_timeout'> {
    return {
      step_timeout: (tx, { ref, payload }) =>
        this.#attempts.timedOut(tx, Number(ref), payload.timeout_seconds),
    };
  }

  #execute(tx: Tx, run: RunRow, effect: Effect): void {
    switch (effect.kind) {
      case 'launch':
        this.#launch(tx, run, effect.step_key, effect.attempt);
        break;
      case 'ask_leader':
        this.#launch(tx, run, '', effect.round);
        break;
      case 'end_attempt':
        this.#end(tx, run, effect.step_key, effect.attempt);
        break;
      case 'end_leader':
        this.#end(tx, run, '', effect.round);
        break;
      case 'run_ended':
        this.#endAgents(tx, run);
        break;
    }
  }

  /** An ACP member has one agent for an attempt of the run, a plain one an agent for each of its steps. */
  #launch(tx: Tx, run: RunRow, step_key: string, attempt: number): void {
    const spec = specOf(run);
    const step = step_key === '' ? undefined : findStep(tx, run.num, step_key);
    const member_id = step?.member_id ?? spec.leader_member_id!;
    const member = spec.members.find((one) => one.member_id === member_id)!;
    const acp = memberKind(member) === 'acp';
    const share = acp ? ['attempt', String(run.attempt)] : ['step', step_key];
    const agent_id = idFrom('agt', run.id, member_id, ...share);
    const attempt_num = insertAttempt(tx, {
      ...{ run_num: run.num, run_attempt: run.attempt, step_key, attempt, member_id, agent_id },
      ...{ over: 0, created_at: this.#context.now() },
    });
    this.#context.options.outbox.enqueue(tx, member.agent!.node_id, agent_id, 'prepare', { attempt_num });
  }

  #end(tx: Tx, run: RunRow, step_key: string, attempt: number): void {
    const row = findAttempt(tx, run, step_key, attempt);
    if (row) this.#attempts.end(tx, row);
  }

  #endAgents(tx: Tx, run: RunRow): void {
    for (const { id } of liveAgentsOfRun(tx, run.num)) this.#attempts.endAgent(tx, id);
  }
}
