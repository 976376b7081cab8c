/**
 * What a run of a team does next: one pure function over the run's graph of steps. It is told what happened, changes the
 * graph, and answers what has to be done; it reads no clock and does nothing itself. Whoever carries it out commits the
 * changed graph together with the effects, so that a crash leaves either nothing of a step's end or all that follows.
 *
 * An attempt of a step is launched at most once. Its first word counts: one that comes after the step is over, or from an
 * attempt of before, changes nothing.
 */
import type { AgentStatus } from './agent.ts';
import { type MemberKind, memberKind, type ShownSpec, type StepCondition, type TeamSpec } from './team.ts';

export const runStatuses = [
  'pending',
  'running',
  'input_required',
  'completed',
  'failed',
  'cancelled',
] as const;
export type RunStatus = (typeof runStatuses)[number];

export const stepStatuses = [
  'pending',
  'ready',
  'running',
  'input_required',
  'completed',
  'failed',
  'cancelled',
  'skipped',
] as const;
export type StepStatus = (typeof stepStatuses)[number];

/** A run's record as clients see it. */
export interface Run {
  id: string;
  number: number;
  team_id: string;
  task_id: string;
  status: RunStatus;
  /** The team's as it was when the run was created. */
  spec: ShownSpec;
  input: Record<string, unknown>;
  /** Any JSON; null: none (yet). */
  output: unknown;
  error: string | null;
  attempt: number;
  version: number;
  /** What wants a human's eye although the run goes on; null: nothing does. */
  attention: string | null;
  created_by: string;
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
}

/** A step's record as clients see it. */
export interface Step {
  run_id: string;
  step_key: string;
  member_id: string;
  depends_on: string[];
  when: StepCondition;
  prompt: string;
  status: StepStatus;
  input: unknown;
  output: unknown;
  error_text: string | null;
  attempt: number;
  max_attempts: number;
  timeout_seconds: number | null;
  agent_id: string | null;
  started_at: string | null;
  ended_at: string | null;
}

/** Who takes part in a run, as clients see it: a member of the team, or a human. */
export interface RunMember {
  actor_id: string;
  /** Null for a human; so are the next three. */
  member_id: string | null;
  role: 'leader' | 'worker' | 'human';
  /** Null before the run has made its agent, and for a member that is driven from outside. */
  agent_id: string | null;
  node_id: string | null;
  /** The agent's. */
  status: AgentStatus | null;
  pending_messages: number;
}

/**
 * Who decides when there is nothing left to do. `steps`: nobody, the steps were all there was. `leader`: an agent, in
 * rounds. `outside`: somebody's word, for a run without steps and without an agent that leads.
 */
export type RunMode = 'steps' | 'leader' | 'outside';

export function runMode({ steps, members, leader_member_id }: TeamSpec | ShownSpec): RunMode {
  if (steps.length > 0) return 'steps';
  const leader = members.find(({ member_id }) => member_id === leader_member_id);
  return leader && memberKind(leader) !== 'outside' ? 'leader' : 'outside';
}

export interface RunState {
  status: RunStatus;
  mode: RunMode;
  /** Rounds that the leader was asked for; never goes back, also not over a restart of the run. */
  rounds: number;
  /** Of them, those before somebody last began or resumed it: `max_rounds` bounds the others. */
  rounds_before: number;
  max_rounds: number;
  /** Of the last round that it was asked for. `unclear`: what came of it is not known. */
  leader: 'unasked' | 'asking' | 'answered' | 'unclear';
  /** Steps that there were when the leader was asked last. */
  steps_seen: number;
  error: string | null;
}

export interface StepState {
  step_key: string;
  member_id: string;
  kind: MemberKind;
  depends_on: readonly string[];
  when: StepCondition;
  max_attempts: number;
  status: StepStatus;
  /** Steps it depends on that are not over. */
  waits_for: number;
  /** One of those that are over did not complete. */
  spoiled: boolean;
  /** Attempts so far; never goes back, also not over a restart of the run. */
  attempt: number;
  /** Attempts since somebody last began or resumed it: what `max_attempts` bounds. */
  tries: number;
  /** The present attempt was given to the member: it begins, or goes on. */
  launched: boolean;
  error_text: string | null;
}

/** How the steps stand, all together. */
export interface Tally {
  /** Some are not over. */
  open: boolean;
  /** Some are ready or running. */
  active: boolean;
  /** Some have failed. */
  failed: boolean;
}

/** The graph of one run. What is put can be read again at once. */
export interface RunGraph {
  run(): RunState;
  putRun(run: RunState): void;
  step(step_key: string): StepState | undefined;
  putStep(step: StepState): void;
  /** Steps that depend on it directly. */
  dependents(step_key: string): StepState[];
  /** All of them, in their order. */
  steps(): StepState[];
  /** Takes those away that were added to the run's own. */
  dropAdded(): void;
  /** Ready steps of plain members that are not launched, in their order; at most `count`. */
  waitingPlain(count: number): StepState[];
  /** For each ACP member that has no launched step, and is not in a round as the leader: its first ready one. */
  waitingAcp(): StepState[];
  tally(): Tally;
  /** How many steps of plain members are launched. */
  plainLive(): number;
  /** How many steps there are. */
  size(): number;
}

export type Happened =
  | { kind: 'begun' }
  /** The attempt's process, or turn, is there. */
  | { kind: 'step_running'; step_key: string; attempt: number }
  | { kind: 'step_completed'; step_key: string; attempt: number }
  /** `final`: another try would be no use, or is not known to be safe. */
  | { kind: 'step_failed'; step_key: string; attempt: number; error_text: string; final?: boolean }
  /** It is not known what came of the attempt, or its member wants a word. */
  | { kind: 'step_unclear'; step_key: string; attempt: number; reason: string }
  /** `own`: the step's own member says it, whose turn or process is left to its end. */
  | { kind: 'step_said'; step_key: string; word: StepWord; own?: boolean }
  | {
      kind: 'step_added';
      step: Omit<
        StepState,
        'status' | 'waits_for' | 'spoiled' | 'attempt' | 'tries' | 'launched' | 'error_text'
      >;
    }
  | { kind: 'leader_ended'; round: number }
  | { kind: 'leader_unclear'; round: number; reason: string }
  | { kind: 'run_said'; word: RunWord };

export type StepWord =
  | { kind: 'start' }
  | { kind: 'complete' }
  | { kind: 'fail'; error_text: string }
  | { kind: 'input_required'; reason: string }
  | { kind: 'resume' };

export type RunWord =
  | { kind: 'complete' }
  | { kind: 'fail'; error_text: string }
  | { kind: 'cancel' }
  | { kind: 'resume' }
  | { kind: 'restart' };

export type Effect =
  /** Give the attempt to the step's member. */
  | { kind: 'launch'; step_key: string; attempt: number }
  /** Whatever of the attempt still goes on has nothing to say any more. */
  | { kind: 'end_attempt'; step_key: string; attempt: number }
  /** `plan`: the leader hears of the run for the first time. `sum_up`: all steps are over. */
  | { kind: 'ask_leader'; round: number; about: 'plan' | 'sum_up' }
  | { kind: 'end_leader'; round: number }
  | { kind: 'run_ended'; status: RunStatus };

/** What the word cannot be said to. */
export class IllegalWord extends Error {
  /** What it is instead. */
  readonly status: RunStatus | StepStatus;

  constructor(status: RunStatus | StepStatus) {
    super(`it is ${status}`);
    this.name = 'IllegalWord';
    this.status = status;
  }
}

const overSteps: readonly StepStatus[] = ['completed', 'failed', 'cancelled', 'skipped'];
const overRuns: readonly RunStatus[] = ['completed', 'failed', 'cancelled'];

export function isStepOver({ status }: { status: StepStatus }): boolean {
  return overSteps.includes(status);
}

export function isRunOver({ status }: { status: RunStatus }): boolean {
  return overRuns.includes(status);
}

/**
 * Takes what happened into the graph; answers what is to be done for it, in order. `plain_max`: how many steps of plain
 * members go on at once. Throws `IllegalWord` for a word that the step or the run cannot take; nothing is changed then.
 */
export function advance(graph: RunGraph, happened: Happened, plain_max: number): Effect[] {
  const effects: Effect[] = [];
  const moved = take(graph, happened, effects);
  if (moved) goOn(graph, plain_max, effects);
  return effects;
}

/** False when nothing came of it. */
function take(graph: RunGraph, happened: Happened, effects: Effect[]): boolean {
  switch (happened.kind) {
    case 'begun':
      return begin(graph);
    case 'run_said':
      return hearRun(graph, happened.word, effects);
    case 'step_said':
      return hearStep(graph, happened, effects);
    case 'step_added':
      return add(graph, happened.step);
    case 'leader_ended':
      return leaderEnded(graph, happened.round);
    case 'leader_unclear':
      return leaderUnclear(graph, happened.round, happened.reason);
    case 'step_running':
    case 'step_completed':
    case 'step_failed':
    case 'step_unclear':
      return attemptTold(graph, happened);
  }
}

// --- attempts ---------------------------------------------------------------------------------------------------------

type Told = Extract<Happened, { attempt: number }>;

function attemptTold(graph: RunGraph, told: Told): boolean {
  const step = graph.step(told.step_key);
  if (!step?.launched || step.attempt !== told.attempt || isStepOver(step)) return false;
  switch (told.kind) {
    case 'step_running':
      if (step.status !== 'ready') return false;
      graph.putStep({ ...step, status: 'running' });
      return true;
    case 'step_completed':
      // Its member asked for a word and has not got it: that its turn, or process, ended is no answer.
      if (step.status === 'input_required') return rest(graph, step);
      over(graph, step, 'completed', null);
      return true;
    case 'step_failed':
      if (step.status === 'input_required') return rest(graph, step);
      if (told.final !== true && step.tries < step.max_attempts) tryAgain(graph, step, told.error_text);
      else over(graph, step, 'failed', told.error_text);
      return true;
    case 'step_unclear':
      if (step.status === 'input_required') return rest(graph, step);
      graph.putStep({ ...step, status: 'input_required', launched: false, error_text: told.reason });
      return true;
  }
}

/** The attempt is over; what it waits for is still to be said. */
function rest(graph: RunGraph, step: StepState): boolean {
  graph.putStep({ ...step, launched: false });
  return true;
}

function tryAgain(graph: RunGraph, step: StepState, error_text: string | null): void {
  graph.putStep({ ...step, status: 'ready', launched: false, error_text });
}

/** Ends a step, and with it those that can never be taken; makes those ready that waited for it alone. */
function over(graph: RunGraph, ended: StepState, status: StepStatus, error_text: string | null): void {
  graph.putStep({ ...ended, status, launched: false, error_text });
  const left = [ended.step_key];
  for (let key = left.pop(); key !== undefined; key = left.pop()) {
    const spoils = graph.step(key)!.status !== 'completed';
    for (const before of graph.dependents(key)) {
      // It did not wait: it is done already, and was not done again with what it depends on.
      if (isStepOver(before)) continue;
      const step = { ...before, waits_for: before.waits_for - 1, spoiled: before.spoiled || spoils };
      const next = settled(step);
      graph.putStep(next);
      if (next.status === 'skipped') left.push(next.step_key);
    }
  }
}

/** A pending step as what it depends on leaves it. */
function settled(step: StepState): StepState {
  if (step.status !== 'pending') return step;
  if (step.spoiled && step.when === 'on_success') return { ...step, status: 'skipped' };
  return step.waits_for === 0 ? { ...step, status: 'ready' } : step;
}

// --- words ------------------------------------------------------------------------------------------------------------

function hearStep(
  graph: RunGraph,
  { step_key, word, own = false }: Extract<Happened, { kind: 'step_said' }>,
  effects: Effect[],
): boolean {
  const step = graph.step(step_key)!;
  const run = graph.run();
  if (isRunOver(run)) throw new IllegalWord(isStepOver(step) ? step.status : run.status);
  const live = step.launched && step.kind !== 'outside';
  const end = () => {
    if (live && !own) effects.push({ kind: 'end_attempt', step_key, attempt: step.attempt });
  };
  const must = (...legal: StepStatus[]) => {
    if (!legal.includes(step.status)) throw new IllegalWord(step.status);
  };
  switch (word.kind) {
    case 'start':
      must('ready');
      // An agent's steps are begun by the run.
      if (step.kind !== 'outside') throw new IllegalWord(step.status);
      graph.putStep({ ...attempted(step), status: 'running' });
      return true;
    case 'complete':
      must('ready', 'running', 'input_required');
      end();
      over(graph, step, 'completed', null);
      return true;
    case 'fail':
      must('ready', 'running', 'input_required');
      end();
      over(graph, step, 'failed', word.error_text);
      return true;
    case 'input_required':
      must('ready', 'running');
      graph.putStep({ ...step, status: 'input_required', error_text: word.reason });
      return true;
    case 'resume':
      must('input_required');
      end();
      if (step.kind !== 'outside') tryAgain(graph, { ...step, tries: 0 }, null);
      else
        graph.putStep({ ...(step.launched ? step : attempted(step)), status: 'running', error_text: null });
      return true;
  }
}

function hearRun(graph: RunGraph, word: RunWord, effects: Effect[]): boolean {
  const run = graph.run();
  switch (word.kind) {
    case 'complete':
    case 'fail':
    case 'cancel': {
      if (isRunOver(run)) throw new IllegalWord(run.status);
      endAll(graph, run, effects);
      const status = word.kind === 'complete' ? 'completed' : word.kind === 'fail' ? 'failed' : 'cancelled';
      finish(graph, status, word.kind === 'fail' ? word.error_text : null, effects);
      return false;
    }
    case 'resume': {
      if (run.status === 'completed' || run.status === 'pending' || run.status === 'running')
        throw new IllegalWord(run.status);
      if (!isRunOver(run)) endAll(graph, run, effects);
      graph.putRun(fresh(run));
      again(graph, (step) => step.status !== 'completed');
      return true;
    }
    case 'restart': {
      if (!isRunOver(run)) endAll(graph, run, effects);
      graph.dropAdded();
      graph.putRun(fresh(run));
      again(graph, () => true);
      return true;
    }
  }
}

function fresh(run: RunState): RunState {
  return { ...run, status: 'running', error: null, leader: 'unasked', rounds_before: run.rounds };
}

/** Nothing of the run goes on any more. */
function endAll(graph: RunGraph, run: RunState, effects: Effect[]): void {
  if (run.leader === 'asking') effects.push({ kind: 'end_leader', round: run.rounds });
  for (const step of graph.steps()) {
    if (isStepOver(step)) continue;
    const { step_key, attempt } = step;
    if (step.launched && step.kind !== 'outside') effects.push({ kind: 'end_attempt', step_key, attempt });
    graph.putStep({ ...step, status: 'cancelled', launched: false });
  }
}

/** Puts steps back to where nothing of them was done. */
function again(graph: RunGraph, which: (step: StepState) => boolean): void {
  const steps = graph.steps();
  const open = new Set(steps.filter(which).map(({ step_key }) => step_key));
  for (const step of steps) {
    if (!open.has(step.step_key)) continue;
    const waits_for = step.depends_on.filter((key) => open.has(key)).length;
    const cleared = { waits_for, spoiled: false, tries: 0, launched: false, error_text: null };
    graph.putStep(settled({ ...step, ...cleared, status: 'pending' }));
  }
}

function begin(graph: RunGraph): boolean {
  const run = graph.run();
  if (run.status !== 'pending') return false;
  graph.putRun({ ...run, status: 'running' });
  for (const step of graph.steps()) graph.putStep(settled(step));
  return true;
}

function add(graph: RunGraph, spec: Extract<Happened, { kind: 'step_added' }>['step']): boolean {
  const run = graph.run();
  if (isRunOver(run)) throw new IllegalWord(run.status);
  const needs = spec.depends_on.map((key) => graph.step(key)!);
  const step: StepState = {
    ...spec,
    status: 'pending',
    waits_for: needs.filter((need) => !isStepOver(need)).length,
    spoiled: needs.some((need) => isStepOver(need) && need.status !== 'completed'),
    attempt: 0,
    tries: 0,
    launched: false,
    error_text: null,
  };
  graph.putStep(run.status === 'pending' ? step : settled(step));
  return true;
}

// --- the leader -------------------------------------------------------------------------------------------------------

function leaderEnded(graph: RunGraph, round: number): boolean {
  const run = graph.run();
  if (run.leader !== 'asking' || run.rounds !== round || isRunOver(run)) return false;
  graph.putRun({ ...run, leader: 'answered' });
  return true;
}

function leaderUnclear(graph: RunGraph, round: number, reason: string): boolean {
  const run = graph.run();
  if (run.leader !== 'asking' || run.rounds !== round || isRunOver(run)) return false;
  graph.putRun({ ...run, leader: 'unclear', error: reason });
  return true;
}

// --- going on ---------------------------------------------------------------------------------------------------------

function goOn(graph: RunGraph, plain_max: number, effects: Effect[]): void {
  const run = graph.run();
  if (run.status === 'pending' || isRunOver(run)) return;
  const free = Math.max(0, plain_max - graph.plainLive());
  for (const step of graph.waitingPlain(free)) launch(graph, step, effects);
  for (const step of graph.waitingAcp()) launch(graph, step, effects);
  conclude(graph, effects);
}

function launch(graph: RunGraph, step: StepState, effects: Effect[]): void {
  const next = attempted(step);
  graph.putStep(next);
  effects.push({ kind: 'launch', step_key: next.step_key, attempt: next.attempt });
}

function attempted(step: StepState): StepState {
  return { ...step, attempt: step.attempt + 1, tries: step.tries + 1, launched: true };
}

/** Ends the run, asks its leader, or says that somebody's word is needed, where nothing else is left. */
function conclude(graph: RunGraph, effects: Effect[]): void {
  const run = graph.run();
  const tally = graph.tally();
  if (tally.open) {
    const status = !tally.active && run.leader !== 'asking' ? 'input_required' : 'running';
    if (status !== run.status) graph.putRun({ ...run, status });
  } else if (run.mode === 'steps') {
    finish(graph, tally.failed ? 'failed' : 'completed', tally.failed ? firstFailure(graph) : null, effects);
  } else if (run.mode === 'leader') concludeRound(graph, run, effects);
  else if (run.status !== 'running') graph.putRun({ ...run, status: 'running' });
}

function concludeRound(graph: RunGraph, run: RunState, effects: Effect[]): void {
  const total = graph.size();
  if (run.leader === 'asking') return;
  if (run.leader === 'unclear') graph.putRun({ ...run, status: 'input_required' });
  else if (run.leader === 'answered' && total === run.steps_seen) finish(graph, 'completed', null, effects);
  else if (run.rounds - run.rounds_before >= run.max_rounds) {
    const error = `the leader has had its ${run.max_rounds} rounds`;
    graph.putRun({ ...run, status: 'input_required', error });
  } else {
    const round = run.rounds + 1;
    graph.putRun({ ...run, status: 'running', leader: 'asking', rounds: round, steps_seen: total });
    effects.push({ kind: 'ask_leader', round, about: total === 0 ? 'plan' : 'sum_up' });
  }
}

function finish(graph: RunGraph, status: RunStatus, error: string | null, effects: Effect[]): void {
  const leader = 'unasked';
  graph.putRun({ ...graph.run(), status, error, leader });
  effects.push({ kind: 'run_ended', status });
}

function firstFailure(graph: RunGraph): string {
  const { step_key, error_text } = graph.steps().find(({ status }) => status === 'failed')!;
  return error_text === null ? `step ${step_key} failed` : `step ${step_key} failed: ${error_text}`;
}
