/** The graph of a run: the state of the run and its steps, the events that change it, and the effects that follow. */
import type { MemberKind, StepCondition } from '../../teams/rules/team.ts';
import type { RunMode, RunStatus, StepStatus } from './run.ts';

/** The state of a run that `advance` reads and changes. */
export interface RunState {
  status: RunStatus;
  mode: RunMode;
  /** Number of rounds of the leader so far. It never decreases, not even when the run restarts. */
  rounds: number;
  /** Rounds before the run was last started or resumed. `max_rounds` limits the rounds since then. */
  rounds_before: number;
  max_rounds: number;
  /** State of the latest round: no prompt yet, prompted, answered, or `unclear` if its outcome is unknown. */
  round_state: 'unasked' | 'asking' | 'answered' | 'unclear';
  /** Number of steps when the latest round began. */
  steps_seen: number;
  error: string | null;
}

/** The state of a step that `advance` reads and changes. */
export interface StepState {
  step_key: string;
  member_id: string;
  kind: MemberKind;
  depends_on: readonly string[];
  when: StepCondition;
  max_attempts: number;
  status: StepStatus;
  /** Number of dependencies that have not ended. */
  waits_for: number;
  /** A dependency ended without being completed. */
  upstream_failed: boolean;
  /** The current attempt; 0 before the first. It never decreases, not even when the run restarts. */
  attempt: number;
  /** Number of attempts since the step was last reset or resumed; limited by `max_attempts`. */
  attempts_since_resume: number;
  /** The current attempt was handed to the member and has not ended. */
  launched: boolean;
  error_text: string | null;
}

/** Whether any steps of a run are in certain states. */
export interface Tally {
  /** Some steps have not ended. */
  open: boolean;
  /** Some steps are ready or running. */
  active: boolean;
}

/** The stored graph of one run. A read after a `put` returns the new state. */
export interface RunGraph {
  run(): RunState;
  putRun(run: RunState): Promise<void>;
  step(step_key: string): Promise<StepState | undefined>;
  putStep(step: StepState): Promise<void>;
  /** The steps that depend on this one directly. */
  dependents(step_key: string): Promise<StepState[]>;
  /** All steps, in the order in which they were defined or added. */
  steps(): Promise<StepState[]>;
  /** Removes the steps that were added after the run was created. */
  dropAdded(): Promise<void>;
  /** The first `count` ready steps of plain members that are not launched. */
  waitingPlain(count: number): Promise<StepState[]>;
  /** The first ready step of each ACP member that has no launched step and is not in a round as the leader. */
  waitingAcp(): Promise<StepState[]>;
  tally(): Promise<Tally>;
  /** Whether any step has failed. */
  hasFailed(): Promise<boolean>;
  /** Number of launched steps of plain members. */
  plainLive(): Promise<number>;
  /** Number of steps. */
  size(): Promise<number>;
}

/** An event of a run, an attempt of a step, or a round. */
export type GraphEvent =
  | { kind: 'begun' }
  /** The attempt's process or turn has started. */
  | { kind: 'step_running'; step_key: string; attempt: number }
  | { kind: 'step_completed'; step_key: string; attempt: number }
  /** `final`: the step is not retried, because a retry would not help or might not be safe. */
  | { kind: 'step_failed'; step_key: string; attempt: number; error_text: string; final?: boolean }
  /** The outcome of the attempt is unknown, or its member needs input. */
  | { kind: 'step_unknown'; step_key: string; attempt: number; reason: string }
  /** `by_own_member`: the step's own member sent the command, so its turn or process is not interrupted. */
  | { kind: 'step_command'; step_key: string; command: StepCommand; by_own_member?: boolean }
  | {
      kind: 'step_added';
      step: Omit<
        StepState,
        | 'status'
        | 'waits_for'
        | 'upstream_failed'
        | 'attempt'
        | 'attempts_since_resume'
        | 'launched'
        | 'error_text'
      >;
    }
  /** The leader's turn or process has ended. */
  | { kind: 'round_ended'; round: number }
  /** The outcome of the round is unknown. */
  | { kind: 'round_unknown'; round: number; reason: string }
  | { kind: 'run_command'; command: RunCommand };

/** The kind of a command is the id of its operation in the API. */
export type StepCommand =
  | { kind: 'startStep' }
  | { kind: 'completeStep' }
  | { kind: 'failStep'; error_text: string }
  | { kind: 'requireStepInput'; reason: string }
  | { kind: 'resumeStep' };

/** The kind of a command is the id of its operation in the API. */
export type RunCommand =
  | { kind: 'completeRun' }
  | { kind: 'failRun'; error_text: string }
  | { kind: 'cancelRun' }
  | { kind: 'resumeRun' }
  | { kind: 'restartRun' };

/**
 * What an agent is asked to do: an attempt of a step, or a round of the leader. Numbers start at 1 and are unique within an
 * attempt of the run.
 */
export type AssignedWork = StepAttempt | { kind: 'round'; round: number };

export interface StepAttempt {
  kind: 'step';
  step_key: string;
  attempt: number;
}

/** An action that must follow a change of the graph. */
export type Effect =
  /** Hand the attempt to the step's member. */
  | { kind: 'launch'; step_key: string; attempt: number }
  /** Stop whatever is still running for the attempt. Its outcome no longer matters. */
  | { kind: 'end_attempt'; step_key: string; attempt: number }
  /** Prompt the leader: to plan if the run has no steps yet, or to summarize because all of them have ended. */
  | { kind: 'start_round'; round: number }
  /** Stop whatever is still running for the round. */
  | { kind: 'end_round'; round: number }
  | { kind: 'run_ended'; status: RunStatus };

/** Thrown for a command that is not allowed in the current state. */
export class IllegalTransition extends Error {
  /** The current state. */
  readonly status: RunStatus | StepStatus;

  constructor(status: RunStatus | StepStatus) {
    super(`it is ${status}`);
    this.name = 'IllegalTransition';
    this.status = status;
  }
}
