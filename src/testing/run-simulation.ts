/**
 * Random histories of a run: a graph, and events in any order. It also simulates an unreliable executor, whose events arrive
 * late, repeatedly, and for attempts that ended long ago. `faults` names every rule that was violated.
 */
import fc from 'fast-check';
import { advance } from '../features/runs/rules/advance.ts';
import {
  type Effect,
  type GraphEvent,
  IllegalTransition,
  type RunGraph,
  type StepCommand,
  type StepState,
} from '../features/runs/rules/graph.ts';
import { isRunOver, isStepOver } from '../features/runs/rules/run.ts';
import type { RunShape, StepShape } from './memory-graph.ts';

/** The graph under test. */
export interface GraphUnderTest {
  readonly graph: RunGraph;
  /** Inserts the row of a step before the event `step_added`. */
  insert(step: StepShape): Promise<void>;
}

const outcomes = ['step_running', 'step_completed', 'step_failed', 'final', 'step_unknown'] as const;
const stepCommands = ['startStep', 'completeStep', 'failStep', 'requireStepInput', 'resumeStep'] as const;
const runCommands = ['completeRun', 'failRun', 'cancelRun', 'resumeRun', 'restartRun'] as const;

const n = fc.nat(50);
const move = fc.record({
  crash: fc.boolean(),
  what: fc.oneof(
    {
      weight: 12,
      arbitrary: fc.record({
        kind: fc.constant('report' as const),
        n,
        outcome: fc.constantFrom(...outcomes),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('step' as const),
        n,
        command: fc.constantFrom(...stepCommands),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('run' as const), command: fc.constantFrom(...runCommands) }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('leader' as const), n, clear: fc.boolean() }) },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('add' as const), n, needs: fc.array(n, { maxLength: 3 }) }),
    },
  ),
});
export type Move = typeof move extends fc.Arbitrary<infer T> ? T : never;

const members = [
  { member_id: 'p', kind: 'plain' },
  { member_id: 'a', kind: 'acp' },
  { member_id: 'b', kind: 'acp' },
  { member_id: 'o', kind: 'outside' },
] as const;

function stepShape(index: number, pick: number, needs: number[], always: boolean, tries: number): StepShape {
  const depends_on = index === 0 ? [] : [...new Set(needs.map((need) => `s${need % index}`))];
  const when = always ? 'always' : 'on_success';
  return { step_key: `s${index}`, ...members[pick % 4]!, depends_on, when, max_attempts: 1 + (tries % 3) };
}

export const anyRun = fc
  .record({
    steps: fc.array(fc.tuple(n, fc.array(n, { maxLength: 3 }), fc.boolean(), n), { maxLength: 8 }),
    led: fc.constantFrom('leader' as const, 'outside' as const),
    max_rounds: fc.integer({ min: 1, max: 3 }),
    plain_max: fc.integer({ min: 1, max: 3 }),
    moves: fc.array(move, { maxLength: 60 }),
  })
  .map(({ steps, led, max_rounds, plain_max, moves }) => ({
    shape: {
      mode: steps.length > 0 ? ('steps' as const) : led,
      max_rounds,
      leader_member_id: 'a',
      steps: steps.map(([pick, needs, always, tries], index) => stepShape(index, pick, needs, always, tries)),
    } satisfies RunShape,
    plain_max,
    moves,
  }));

type LaunchedAttempt = { step_key: string; attempt: number };

export class RunSimulation {
  readonly faults: string[] = [];
  /** All effects, in order. */
  readonly effects: Effect[] = [];
  readonly #under_test: GraphUnderTest;
  readonly #plain_max: number;
  /** All attempts of steps that the run launched since its last restart; `#live` has those that have not ended. */
  #launched: LaunchedAttempt[] = [];
  #live: LaunchedAttempt[] = [];
  #rounds: number[] = [];
  #open_round: number | null = null;
  #added = 0;

  private constructor(under_test: GraphUnderTest, plain_max: number) {
    this.#under_test = under_test;
    this.#plain_max = plain_max;
  }

  static async begin(under_test: GraphUnderTest, plain_max: number): Promise<RunSimulation> {
    const simulation = new RunSimulation(under_test, plain_max);
    await simulation.#apply({ kind: 'begun' });
    return simulation;
  }

  async run({ what }: Move): Promise<void> {
    const { graph } = this.#under_test;
    const steps = await graph.steps();
    switch (what.kind) {
      case 'report': {
        const launched = pick(this.#launched, what.n);
        if (launched) await this.#report(launched, what.outcome);
        return;
      }
      case 'leader': {
        const round = pick(this.#rounds, what.n);
        if (round === undefined) return;
        if (this.#open_round === round) this.#open_round = null;
        await this.#apply(
          what.clear ? { kind: 'round_ended', round } : { kind: 'round_unknown', round, reason: 'lost' },
        );
        return;
      }
      case 'step': {
        const step = pick(steps, what.n);
        if (!step) return;
        const fields = { failStep: { error_text: 'bad' }, requireStepInput: { reason: 'what?' } };
        const more = what.command in fields ? fields[what.command as keyof typeof fields] : {};
        const command = { kind: what.command, ...more } as StepCommand;
        await this.#apply({ kind: 'step_command', step_key: step.step_key, command });
        return;
      }
      case 'run': {
        const kind = what.command;
        const command = kind === 'failRun' ? { kind, error_text: 'bad' } : { kind };
        await this.#apply({ kind: 'run_command', command });
        return;
      }
      case 'add': {
        if (isRunOver(graph.run())) return;
        const needs = what.needs.flatMap((need) => pick(steps, need)?.step_key ?? []);
        const shape = stepShape(0, what.n, [], what.n % 2 === 0, what.n);
        const step = { ...shape, step_key: `x${this.#added++}`, depends_on: [...new Set(needs)] };
        await this.#under_test.insert(step);
        await this.#apply({ kind: 'step_added', step });
      }
    }
  }

  /** Completes all remaining steps and rounds, so that the run ends. */
  async finish(): Promise<void> {
    const { graph } = this.#under_test;
    for (let tries = 1_000; tries > 0 && !isRunOver(graph.run()); tries--) {
      const [live] = this.#live;
      const open = (await graph.steps()).find(
        ({ status, kind }) =>
          status === 'input_required' ||
          (status === 'ready' && kind === 'outside') ||
          (status === 'running' && kind === 'outside'),
      );
      if (live) await this.#report(live, 'step_completed');
      else if (open)
        await this.#apply({
          kind: 'step_command',
          step_key: open.step_key,
          command: { kind: 'completeStep' },
        });
      else if (this.#open_round !== null) {
        const round = this.#open_round;
        this.#open_round = null;
        await this.#apply({ kind: 'round_ended', round });
      } else if (graph.run().mode !== 'steps')
        await this.#apply({ kind: 'run_command', command: { kind: 'completeRun' } });
      else {
        this.#fault('the run is stuck');
        return;
      }
    }
    if (!isRunOver(graph.run())) this.#fault('the run never ends');
  }

  async #report(launched: LaunchedAttempt, outcome: (typeof outcomes)[number]): Promise<void> {
    if (outcome !== 'step_running') this.#live = this.#live.filter((one) => one !== launched);
    const { step_key, attempt } = launched;
    if (outcome === 'step_running' || outcome === 'step_completed')
      await this.#apply({ kind: outcome, step_key, attempt });
    else if (outcome === 'step_unknown')
      await this.#apply({ kind: outcome, step_key, attempt, reason: 'lost' });
    else
      await this.#apply({
        kind: 'step_failed',
        step_key,
        attempt,
        error_text: 'bad',
        final: outcome === 'final',
      });
  }

  async #apply(event: GraphEvent): Promise<void> {
    const { graph } = this.#under_test;
    const before = graph.run();
    const steps = JSON.stringify(await graph.steps());
    let effects: Effect[];
    try {
      effects = await advance(graph, event, this.#plain_max);
    } catch (error) {
      if (!(error instanceof IllegalTransition)) throw error;
      if (JSON.stringify(await graph.steps()) !== steps) this.#fault('an illegal command changed a step');
      return;
    }
    const again = event.kind === 'run_command' && ['resumeRun', 'restartRun'].includes(event.command.kind);
    if (isRunOver(before) && !again && graph.run().status !== before.status)
      this.#fault(`a run that was ${before.status} is ${graph.run().status}`);
    const restarts = event.kind === 'run_command' && event.command.kind === 'restartRun';
    for (const effect of effects) await this.#carryOut(effect, restarts);
    this.effects.push(...effects);
    await this.#check();
  }

  async #carryOut(effect: Effect, restarts: boolean): Promise<void> {
    const { graph } = this.#under_test;
    switch (effect.kind) {
      case 'launch': {
        const { step_key, attempt } = effect;
        // After a restart, the numbers of attempts may repeat.
        if (restarts) this.#launched = this.#launched.filter((one) => this.#live.includes(one));
        const step = (await graph.step(step_key))!;
        if (this.#launched.some((one) => one.step_key === step_key && one.attempt === attempt))
          this.#fault(`attempt ${attempt} of ${step_key} was launched twice`);
        if (this.#live.some((one) => one.step_key === step_key))
          this.#fault(`${step_key} runs twice at once`);
        const needs: StepState[] = [];
        for (const key of step.depends_on) needs.push((await graph.step(key))!);
        if (!needs.every(isStepOver)) this.#fault(`${step_key} was launched too early`);
        if (step.when === 'on_success' && needs.some(({ status }) => status !== 'completed'))
          this.#fault(`${step_key} was launched after a failure`);
        const launched = { step_key, attempt };
        this.#launched.push(launched);
        this.#live.push(launched);
        return;
      }
      case 'end_attempt': {
        const { step_key, attempt } = effect;
        this.#live = this.#live.filter((one) => one.step_key !== step_key || one.attempt !== attempt);
        return;
      }
      case 'start_round':
        if (this.#rounds.includes(effect.round)) this.#fault(`round ${effect.round} was started twice`);
        if (this.#open_round !== null) this.#fault('two rounds are open at once');
        if (!(await graph.steps()).every(isStepOver)) this.#fault('a round started too early');
        this.#rounds.push(effect.round);
        this.#open_round = effect.round;
        return;
      case 'end_round':
        this.#open_round = null;
        return;
      case 'run_ended':
        if (this.#live.length > 0) this.#fault('an attempt is live after the end of the run');
        if (this.#open_round !== null) this.#fault('a round is open after the end of the run');
    }
  }

  async #check(): Promise<void> {
    const { graph } = this.#under_test;
    const run = graph.run();
    const steps = await graph.steps();
    const byKey = new Map(steps.map((step) => [step.step_key, step]));
    const live = this.#live.map(({ step_key }) => byKey.get(step_key)).filter((step) => step !== undefined);
    const plain = live.filter(({ kind }) => kind === 'plain').length;
    if (plain > this.#plain_max) this.#fault('too many plain steps run at once');
    const acp = live.filter(({ kind }) => kind === 'acp').map(({ member_id }) => member_id);
    if (new Set(acp).size < acp.length) this.#fault('an ACP member runs two steps at once');
    if (isRunOver(run) && !steps.every(isStepOver)) this.#fault('the run is over, but a step is not');
    if (!isRunOver(run) && run.mode === 'steps' && steps.every(isStepOver))
      this.#fault('every step is over, but the run is not');
    if (run.rounds - run.rounds_before > run.max_rounds) this.#fault('the run has too many rounds');
    if (!isRunOver(run)) for (const step of steps) this.#checkStep(step, byKey, plain, acp);
  }

  #checkStep(step: StepState, byKey: Map<string, StepState>, plain: number, acp: string[]): void {
    const needs = step.depends_on.map((key) => byKey.get(key)!);
    const done = needs.every(({ status }) => status === 'completed');
    const { step_key, status, kind } = step;
    if (status === 'pending' && needs.every(isStepOver))
      this.#fault(`${step_key} stays pending after its dependencies`);
    if (status === 'skipped' && (done || step.when === 'always')) this.#fault(`${step_key} was skipped`);
    if (status !== 'ready' || step.launched) return;
    if (kind === 'plain' && plain < this.#plain_max) this.#fault(`${step_key} should have been launched`);
    const leads = this.#open_round !== null && step.member_id === 'a';
    if (kind === 'acp' && !leads && !acp.includes(step.member_id))
      this.#fault(`${step_key} should have been launched`);
  }

  #fault(what: string): void {
    this.faults.push(what);
  }
}

function pick<T>(from: readonly T[], at: number): T | undefined {
  return from[at % Math.max(1, from.length)];
}
