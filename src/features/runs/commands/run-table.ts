/** Shows a run on a terminal: draws its board in place, after each change and every second. */

import type { Io } from '../../../cli/context.ts';
import { LiveRegion } from '../../../cli/live-region.ts';
import { supportsColor } from '../../../cli/output.ts';
import type { Frame } from '../../../client/client.ts';
import type { ReviewRecord } from '../../reviews/commands/review-lines.ts';
import { limits } from '../limits.ts';
import { isRunOver, type Run, type Step } from '../rules/run.ts';
import { boardLines } from './run-board.ts';
import { RunState, type RunView } from './run-state.ts';

export class RunTable implements RunView {
  readonly #io: Io;
  readonly #title: string;
  readonly #state: RunState;
  readonly #region: LiveRegion;
  readonly #tick: NodeJS.Timeout;
  #reviews: readonly ReviewRecord[] = [];
  #lost = false;
  #pending: NodeJS.Timeout | null = null;

  constructor(io: Io, title: string, run: Run, steps: readonly Step[]) {
    this.#io = io;
    this.#title = title;
    this.#state = new RunState(run, steps);
    this.#region = new LiveRegion(io);
    this.#tick = setInterval(() => this.#schedule(), limits.cli_tick_ms);
  }

  async frame(frame: Frame): Promise<void> {
    this.#state.apply(frame);
    this.#schedule();
  }

  reviews(waiting: readonly ReviewRecord[]): void {
    this.#reviews = waiting;
    this.#schedule();
  }

  connection(lost: boolean): void {
    this.#lost = lost;
    this.#schedule();
  }

  async end(): Promise<void> {
    clearInterval(this.#tick);
    if (this.#pending) clearTimeout(this.#pending);
    if (isRunOver(this.#state.run)) this.#reviews = [];
    await this.#draw();
  }

  #schedule(): void {
    this.#pending ??= setTimeout(() => {
      this.#pending = null;
      // If the terminal is gone, its signal ends the command.
      this.#draw().catch(() => {});
    }, limits.cli_redraw_ms);
  }

  #draw(): Promise<void> {
    const { run, steps } = this.#state;
    const note = this.#lost ? 'the plane does not answer; trying again' : null;
    const board = { title: this.#title, run, steps, reviews: this.#reviews, note };
    const screen = { ...this.#region.size, colored: supportsColor(this.#io.stdout, this.#io.env) };
    return this.#region.draw(boardLines(board, screen, Date.now()));
  }
}
