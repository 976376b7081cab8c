/**
 * The state of a run and its steps, updated by the frames of the run's stream, and the interface of the classes that show
 * it.
 */
import type { Frame } from '../../../client/client.ts';
import type { ReviewRecord } from '../../reviews/commands/review-lines.ts';
import type { Run, Step } from '../rules/run.ts';

/** Shows a run while `svc runs watch` follows it. */
export interface RunView {
  frame(frame: Frame): Promise<void>;
  reviews(waiting: readonly ReviewRecord[]): void;
  /** `lost`: true if the plane is not responding, false if it is responding again. */
  connection(lost: boolean): void;
  end(): Promise<void>;
}

/** The newest records of a run and its steps. */
export class RunState {
  run: Run;
  readonly steps: Map<string, Step>;

  constructor(run: Run, steps: readonly Step[]) {
    this.run = run;
    this.steps = new Map(steps.map((step) => [step.step_key, step]));
  }

  apply({ data }: Frame): void {
    if (data.type === 'step') {
      const step = data.record as Step;
      this.steps.set(step.step_key, step);
    } else if (data.type === 'run') {
      const before = this.run.attempt;
      this.run = data.record as Run;
      if (this.run.attempt !== before) this.#dropAdded();
    }
  }

  /** A restart begins with the steps of the definition, without those that were added later. */
  #dropAdded(): void {
    const own = new Set(this.run.spec.steps.map(({ step_key }) => step_key));
    for (const key of this.steps.keys()) if (!own.has(key)) this.steps.delete(key);
  }
}
