/**
 * The state machine of a run: one pure function over the graph of its steps. It takes an event, changes the graph, and returns
 * the effects that must follow. It reads no clock and does no I/O. The caller commits the changed graph and the effects in one
 * transaction, so a crash leaves either nothing of an event or all of it.
 *
 * A run:
 *
 *     pending ──▶ running ◀──▶ input_required
 *                    │               │
 *                    ▼               ▼
 *          completed │ failed │ cancelled        resume: failed, cancelled, input_required ──▶ running
 *                                                restart: any ──▶ running
 *
 * A step:
 *
 *     pending ──▶ ready ──▶ running ──▶ completed │ failed │ cancelled
 *        │          ▲  ▲      │  ▲
 *        ▼          │  └──────┘  └── resume of an outside member
 *     skipped       │    retry
 *                   └── resume ── input_required ◀── ready, running
 *
 * Each attempt of a step is launched at most once. The first event that ends it counts. An event from a superseded attempt, or
 * for a step that has ended, changes nothing.
 */
import {
  type Effect,
  type GraphEvent,
  IllegalTransition,
  type RunCommand,
  type RunGraph,
  type RunState,
  type StepState,
} from './graph.ts';
import { isRunOver, isStepOver, type RunStatus, type StepStatus } from './run.ts';

/**
 * Applies an event to the graph and returns the resulting effects in order. An event that no longer applies has no effects.
 *
 * @param plain_max how many steps of plain members may run at the same time
 * @throws IllegalTransition for a command that is not allowed in the current state; the graph is then unchanged
 */
export async function advance(graph: RunGraph, event: GraphEvent, plain_max: number): Promise<Effect[]> {
  const effects: Effect[] = [];
  if (await apply(graph, event, effects)) await continueRun(graph, plain_max, effects);
  return effects;
}

/** Returns false if the event changed nothing, or ended the run. */
async function apply(graph: RunGraph, event: GraphEvent, effects: Effect[]): Promise<boolean> {
  switch (event.kind) {
    case 'begun':
      return begin(graph);
    case 'run_command':
      return applyRunCommand(graph, event.command, effects);
    case 'step_command':
      return applyStepCommand(graph, event, effects);
    case 'step_added':
      return addStep(graph, event.step);
    case 'round_ended':
      return endRound(graph, event.round);
    case 'round_unknown':
      return suspendRound(graph, event.round, event.reason);
    case 'step_running':
    case 'step_completed':
    case 'step_failed':
    case 'step_unknown':
      return applyAttemptEvent(graph, event);
  }
}

type AttemptEvent = Extract<GraphEvent, { attempt: number }>;

async function applyAttemptEvent(graph: RunGraph, event: AttemptEvent): Promise<boolean> {
  const step = await graph.step(event.step_key);
  if (!step?.launched || step.attempt !== event.attempt || isStepOver(step)) return false;
  if (event.kind === 'step_running') {
    if (step.status !== 'ready') return false;
    await graph.putStep({ ...step, status: 'running' });
  } else if (step.status === 'input_required') {
    // Its member is waiting for input, and the end of its turn or process is not that input.
    await graph.putStep({ ...step, launched: false });
  } else await endAttempt(graph, step, event);
  return true;
}

function endAttempt(
  graph: RunGraph,
  step: StepState,
  event: Exclude<AttemptEvent, { kind: 'step_running' }>,
): Promise<void> {
  switch (event.kind) {
    case 'step_completed':
      return endStep(graph, step, 'completed', null);
    case 'step_failed': {
      const may_retry = event.final !== true && step.attempts_since_resume < step.max_attempts;
      return may_retry
        ? makeReady(graph, step, event.error_text)
        : endStep(graph, step, 'failed', event.error_text);
    }
    case 'step_unknown':
      return graph.putStep({ ...step, status: 'input_required', launched: false, error_text: event.reason });
  }
}

/** Ready for its next attempt. `error_text`: why the last one failed. */
async function makeReady(graph: RunGraph, step: StepState, error_text: string | null): Promise<void> {
  await graph.putStep({ ...step, status: 'ready', launched: false, error_text });
}

/** Ends a step. Dependent steps that were waiting only for this step become ready or are skipped. */
export async function endStep(
  graph: RunGraph,
  ended: StepState,
  status: StepStatus,
  error_text: string | null,
): Promise<void> {
  await graph.putStep({ ...ended, status, launched: false, error_text });
  const ended_keys = [ended.step_key];
  for (let key = ended_keys.pop(); key !== undefined; key = ended_keys.pop()) {
    const failed = (await graph.step(key))!.status !== 'completed';
    for (const before of await graph.dependents(key)) {
      // A resumed run keeps completed steps even if it repeats the steps that they depend on.
      if (isStepOver(before)) continue;
      const step = {
        ...before,
        waits_for: before.waits_for - 1,
        upstream_failed: before.upstream_failed || failed,
      };
      const next = resolvePending(step);
      await graph.putStep(next);
      if (next.status === 'skipped') ended_keys.push(next.step_key);
    }
  }
}

/** Returns the new state of a pending step, which depends on the outcomes of its dependencies. */
function resolvePending(step: StepState): StepState {
  if (step.status !== 'pending') return step;
  if (step.upstream_failed && step.when === 'on_success') return { ...step, status: 'skipped' };
  return step.waits_for === 0 ? { ...step, status: 'ready' } : step;
}

async function applyStepCommand(
  graph: RunGraph,
  { step_key, command, by_own_member = false }: Extract<GraphEvent, { kind: 'step_command' }>,
  effects: Effect[],
): Promise<boolean> {
  const step = (await graph.step(step_key))!;
  const run = graph.run();
  if (isRunOver(run)) throw new IllegalTransition(isStepOver(step) ? step.status : run.status);
  const has_running_agent = step.launched && step.kind !== 'outside';
  const end = () => {
    if (has_running_agent && !by_own_member)
      effects.push({ kind: 'end_attempt', step_key, attempt: step.attempt });
  };
  const must = (...legal: StepStatus[]) => {
    if (!legal.includes(step.status)) throw new IllegalTransition(step.status);
  };
  switch (command.kind) {
    case 'startStep':
      must('ready');
      // Only outside members start their own steps. The run starts those of agents.
      if (step.kind !== 'outside') throw new IllegalTransition(step.status);
      await graph.putStep({ ...withNextAttempt(step), status: 'running' });
      return true;
    case 'completeStep':
      must('ready', 'running', 'input_required');
      end();
      await endStep(graph, step, 'completed', null);
      return true;
    case 'failStep':
      must('ready', 'running', 'input_required');
      end();
      await endStep(graph, step, 'failed', command.error_text);
      return true;
    case 'requireStepInput':
      must('ready', 'running');
      await graph.putStep({ ...step, status: 'input_required', error_text: command.reason });
      return true;
    case 'resumeStep':
      must('input_required');
      end();
      if (step.kind !== 'outside') await makeReady(graph, { ...step, attempts_since_resume: 0 }, null);
      else
        await graph.putStep({
          ...(step.launched ? step : withNextAttempt(step)),
          status: 'running',
          error_text: null,
        });
      return true;
  }
}

async function applyRunCommand(graph: RunGraph, command: RunCommand, effects: Effect[]): Promise<boolean> {
  const run = graph.run();
  switch (command.kind) {
    case 'completeRun':
    case 'failRun':
    case 'cancelRun': {
      if (isRunOver(run)) throw new IllegalTransition(run.status);
      await cancelOpen(graph, run, effects);
      await finish(
        graph,
        ending[command.kind],
        command.kind === 'failRun' ? command.error_text : null,
        effects,
      );
      return false;
    }
    case 'resumeRun': {
      if (run.status === 'completed' || run.status === 'pending' || run.status === 'running')
        throw new IllegalTransition(run.status);
      if (!isRunOver(run)) await cancelOpen(graph, run, effects);
      await graph.putRun(withRunStarted(run));
      await reset(graph, (step) => step.status !== 'completed');
      return true;
    }
    case 'restartRun': {
      if (!isRunOver(run)) await cancelOpen(graph, run, effects);
      await graph.dropAdded();
      await graph.putRun(withRunStarted(run));
      await reset(graph, () => true);
      return true;
    }
  }
}

const ending = { completeRun: 'completed', failRun: 'failed', cancelRun: 'cancelled' } as const;

function withRunStarted(run: RunState): RunState {
  return { ...run, status: 'running', error: null, round_state: 'unasked', rounds_before: run.rounds };
}

/** Cancels every step and round that has not ended. */
async function cancelOpen(graph: RunGraph, run: RunState, effects: Effect[]): Promise<void> {
  if (run.round_state === 'asking') effects.push({ kind: 'end_round', round: run.rounds });
  for (const step of await graph.steps()) {
    if (isStepOver(step)) continue;
    const { step_key, attempt } = step;
    if (step.launched && step.kind !== 'outside') effects.push({ kind: 'end_attempt', step_key, attempt });
    await graph.putStep({ ...step, status: 'cancelled', launched: false });
  }
}

/** Resets the selected steps to the state before their first attempt. */
export async function reset(graph: RunGraph, which: (step: StepState) => boolean): Promise<void> {
  const steps = await graph.steps();
  const open = new Set(steps.filter(which).map(({ step_key }) => step_key));
  for (const step of steps) {
    if (!open.has(step.step_key)) continue;
    const waits_for = step.depends_on.filter((key) => open.has(key)).length;
    const cleared = {
      waits_for,
      upstream_failed: false,
      attempts_since_resume: 0,
      launched: false,
      error_text: null,
    };
    await graph.putStep(resolvePending({ ...step, ...cleared, status: 'pending' }));
  }
}

async function begin(graph: RunGraph): Promise<boolean> {
  const run = graph.run();
  if (run.status !== 'pending') return false;
  await graph.putRun({ ...run, status: 'running' });
  for (const step of await graph.steps()) await graph.putStep(resolvePending(step));
  return true;
}

async function addStep(
  graph: RunGraph,
  spec: Extract<GraphEvent, { kind: 'step_added' }>['step'],
): Promise<boolean> {
  const run = graph.run();
  if (isRunOver(run)) throw new IllegalTransition(run.status);
  const needs: StepState[] = [];
  for (const key of spec.depends_on) needs.push((await graph.step(key))!);
  const step: StepState = {
    ...spec,
    status: 'pending',
    waits_for: needs.filter((need) => !isStepOver(need)).length,
    upstream_failed: needs.some((need) => isStepOver(need) && need.status !== 'completed'),
    attempt: 0,
    attempts_since_resume: 0,
    launched: false,
    error_text: null,
  };
  await graph.putStep(run.status === 'pending' ? step : resolvePending(step));
  return true;
}

async function endRound(graph: RunGraph, round: number): Promise<boolean> {
  const run = graph.run();
  if (run.round_state !== 'asking' || run.rounds !== round || isRunOver(run)) return false;
  await graph.putRun({ ...run, round_state: 'answered' });
  return true;
}

async function suspendRound(graph: RunGraph, round: number, reason: string): Promise<boolean> {
  const run = graph.run();
  if (run.round_state !== 'asking' || run.rounds !== round || isRunOver(run)) return false;
  await graph.putRun({ ...run, round_state: 'unclear', error: reason });
  return true;
}

/** Launches ready steps. If nothing can continue, concludes the run or its round. */
async function continueRun(graph: RunGraph, plain_max: number, effects: Effect[]): Promise<void> {
  const run = graph.run();
  if (run.status === 'pending' || isRunOver(run)) return;
  const free = Math.max(0, plain_max - (await graph.plainLive()));
  for (const step of await graph.waitingPlain(free)) await launch(graph, step, effects);
  for (const step of await graph.waitingAcp()) await launch(graph, step, effects);
  await conclude(graph, effects);
}

async function launch(graph: RunGraph, step: StepState, effects: Effect[]): Promise<void> {
  const next = withNextAttempt(step);
  await graph.putStep(next);
  effects.push({ kind: 'launch', step_key: next.step_key, attempt: next.attempt });
}

function withNextAttempt(step: StepState): StepState {
  return {
    ...step,
    attempt: step.attempt + 1,
    attempts_since_resume: step.attempts_since_resume + 1,
    launched: true,
  };
}

/** Ends the run, prompts its leader for the next round, or waits for input, if no step can continue. */
async function conclude(graph: RunGraph, effects: Effect[]): Promise<void> {
  const run = graph.run();
  const tally = await graph.tally();
  if (tally.open) {
    const status = !tally.active && run.round_state !== 'asking' ? 'input_required' : 'running';
    if (status !== run.status) await graph.putRun({ ...run, status });
  } else if (run.mode === 'steps') {
    const failed = await graph.hasFailed();
    await finish(graph, failed ? 'failed' : 'completed', failed ? await firstFailure(graph) : null, effects);
  } else if (run.mode === 'leader') await concludeRound(graph, run, effects);
  else if (run.status !== 'running') await graph.putRun({ ...run, status: 'running' });
}

async function concludeRound(graph: RunGraph, run: RunState, effects: Effect[]): Promise<void> {
  const total = await graph.size();
  if (run.round_state === 'asking') return;
  if (run.round_state === 'unclear') await graph.putRun({ ...run, status: 'input_required' });
  else if (run.round_state === 'answered' && total === run.steps_seen)
    await finish(graph, 'completed', null, effects);
  else if (run.rounds - run.rounds_before >= run.max_rounds) {
    const error = `the leader has used its ${run.max_rounds} rounds`;
    await graph.putRun({ ...run, status: 'input_required', error });
  } else {
    const round = run.rounds + 1;
    await graph.putRun({
      ...run,
      status: 'running',
      round_state: 'asking',
      rounds: round,
      steps_seen: total,
    });
    effects.push({ kind: 'start_round', round });
  }
}

async function finish(
  graph: RunGraph,
  status: RunStatus,
  error: string | null,
  effects: Effect[],
): Promise<void> {
  await graph.putRun({ ...graph.run(), status, error, round_state: 'unasked' });
  effects.push({ kind: 'run_ended', status });
}

async function firstFailure(graph: RunGraph): Promise<string> {
  const { step_key, error_text } = (await graph.steps()).find(({ status }) => status === 'failed')!;
  return error_text === null ? `step ${step_key} failed` : `step ${step_key} failed: ${error_text}`;
}
