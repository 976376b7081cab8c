/** Actor methods about steps and runs. They follow the same rules as people's commands. */
import { problems } from '../../core/problem.ts';
import type { Store, Tx } from '../../store/store.ts';
import type { ActorMethods } from '../feature.ts';
import { findStep } from '../runs/queries/steps.ts';
import type { Step } from '../runs/rules/run.ts';
import { type StepRequest, stepsOfRun } from '../runs/run-commands.ts';
import type { Runs } from '../runs/service.ts';
import { unique } from '../teams/rules/spec.ts';
import { type ActorRequestContext, actInRun, commanderOf, type RunParty } from './acting.ts';
import type { StepHead } from './contract.ts';
import type { ActorCaller } from './rules/actor.ts';
import { authorizeAction } from './rules/rights.ts';
import { assertCurrentStepAttempt } from './stale-attempts.ts';
import type { ActorTransactions } from './transactions.ts';

export type StepMethods = Pick<
  ActorMethods,
  | 'step-list'
  | 'step-add'
  | 'step-complete'
  | 'step-fail'
  | 'step-input-required'
  | 'run-complete'
  | 'run-fail'
>;

export function stepMethods(
  store: Store,
  transactions: ActorTransactions,
  { commands }: Pick<Runs, 'commands'>,
): StepMethods {
  /** A command that ends the step, or the work on it. */
  const commandStep = (
    caller: ActorCaller,
    context: ActorRequestContext,
    step_key: string,
    command: () => StepRequest,
  ) =>
    transactions.inCurrentAttempt(caller, context, 'own_step.end', async (tx, acting) => {
      await authorizeStepEnd(tx, caller, acting, step_key);
      return commands.commandStep(tx, acting.run, step_key, command(), commanderOf(caller, acting));
    });
  return {
    'step-list': (caller, { step_key, ...context }) =>
      store.read(async (reader) => {
        const steps = await stepsOfRun(reader, (await actInRun(reader, caller, context)).run);
        if (step_key === undefined) return { steps: steps.map(toStepHead) };
        const found = steps.filter((step) => step.step_key === step_key);
        if (found.length === 0) throw problems.stepNotFound();
        return { steps: found };
      }),
    'step-add': (caller, context) =>
      transactions.inCurrentAttempt(caller, context, 'steps.add', (tx, acting) => {
        const { step_key, member_id, depends_on = [], prompt = '', input = null } = context;
        const defaults = { when: 'on_success', timeout_seconds: null, max_attempts: 1 } as const;
        const step = { step_key, member_id, depends_on: unique(depends_on), prompt, input, ...defaults };
        return commands.addStep(tx, acting.run, step, commanderOf(caller, acting));
      }),
    'step-complete': (caller, { output, ...context }) =>
      commandStep(caller, context, context.step_key, () => ({ kind: 'completeStep', output })),
    'step-fail': (caller, { error_text, ...context }) =>
      commandStep(caller, context, context.step_key, () => ({
        kind: 'failStep',
        error_text: requireText(error_text),
      })),
    'step-input-required': (caller, { reason, ...context }) =>
      commandStep(caller, context, context.step_key, () => ({ kind: 'requireStepInput', reason })),
    'run-complete': (caller, { output = null, ...context }) =>
      transactions.inCurrentAttempt(caller, context, 'run.end', (tx, acting) =>
        commands.commandRun(tx, acting.run, { kind: 'completeRun', output }, commanderOf(caller, acting)),
      ),
    'run-fail': (caller, { error_text, ...context }) =>
      transactions.inCurrentAttempt(caller, context, 'run.end', (tx, acting) => {
        const command = { kind: 'failRun', error_text: requireText(error_text) } as const;
        return commands.commandRun(tx, acting.run, command, commanderOf(caller, acting));
      }),
  };
}

/** A worker ends only its own steps. Throws `step not found`, `not allowed` and `attempt <n> of the step is over`. */
async function authorizeStepEnd(
  tx: Tx,
  caller: ActorCaller,
  acting: RunParty,
  step_key: string,
): Promise<void> {
  const step = await findStep(tx, acting.run.num, step_key);
  if (!step) throw problems.stepNotFound();
  const own = acting.kind === 'member' && step.member_id === acting.member.member_id;
  if (!own) authorizeAction(acting.role, 'steps.end');
  await assertCurrentStepAttempt(tx, caller, step);
}

function requireText(error_text: string): string {
  if (error_text.trim() === '') throw problems.errorTextRequired();
  return error_text;
}

function toStepHead({ input: _, output: __, prompt: ___, ...head }: Step): StepHead {
  return head;
}
