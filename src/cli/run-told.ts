/** A run as the frames of its stream tell of it, and what shows that to people. */
import type { Frame } from '../contract/client.ts';
import type { Run, Step } from '../domain/run.ts';
import type { ReviewRecord } from './review-lines.ts';

/** What people see of it. Nothing here throws for what they do not look at. */
export interface RunView {
  frame(frame: Frame): Promise<void>;
  reviews(waiting: readonly ReviewRecord[]): void;
  /** The plane does not answer, or does again. */
  link(lost: boolean): void;
  end(): Promise<void>;
}

/** The run and its steps as frames tell of them. */
export class Told {
  run: Run;
  readonly steps: Map<string, Step>;

  constructor(run: Run, steps: readonly Step[]) {
    this.run = run;
    this.steps = new Map(steps.map((step) => [step.step_key, step]));
  }

  take({ data }: Frame): void {
    if (data.type === 'step') {
      const step = data.record as Step;
      this.steps.set(step.step_key, step);
    } else if (data.type === 'run') {
      const before = this.run.attempt;
      this.run = data.record as Run;
      if (this.run.attempt !== before) this.#dropAdded();
    }
  }

  /** A restart begins with the steps of the definition. */
  #dropAdded(): void {
    const own = new Set(this.run.spec.steps.map(({ step_key }) => step_key));
    for (const key of this.steps.keys()) if (!own.has(key)) this.steps.delete(key);
  }
}
