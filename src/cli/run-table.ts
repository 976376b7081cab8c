/** A run on a terminal: its board, drawn again in place as it changes and as time passes. */
import { limits } from '../base/limits.ts';
import type { Frame } from '../contract/client.ts';
import { isRunOver, type Run, type Step } from '../domain/run.ts';
import type { Io } from './context.ts';
import { LiveRegion } from './live-region.ts';
import { colours } from './output.ts';
import type { ReviewRecord } from './review-lines.ts';
import { boardLines } from './run-board.ts';
import { type RunView, Told } from './run-told.ts';

export class RunTable implements RunView {
  readonly #io: Io;
  readonly #title: string;
  readonly #told: Told;
  readonly #region: LiveRegion;
  readonly #tick: NodeJS.Timeout;
  #reviews: readonly ReviewRecord[] = [];
  #lost = false;
  #soon: NodeJS.Timeout | null = null;

  constructor(io: Io, title: string, run: Run, steps: readonly Step[]) {
    this.#io = io;
    this.#title = title;
    this.#told = new Told(run, steps);
    this.#region = new LiveRegion(io);
    this.#tick = setInterval(() => this.#later(), limits.cli_tick_ms);
  }

  async frame(frame: Frame): Promise<void> {
    this.#told.take(frame);
    this.#later();
  }

  reviews(waiting: readonly ReviewRecord[]): void {
    this.#reviews = waiting;
    this.#later();
  }

  link(lost: boolean): void {
    this.#lost = lost;
    this.#later();
  }

  async end(): Promise<void> {
    clearInterval(this.#tick);
    if (this.#soon) clearTimeout(this.#soon);
    if (isRunOver(this.#told.run)) this.#reviews = [];
    await this.#draw();
  }

  #later(): void {
    this.#soon ??= setTimeout(() => {
      this.#soon = null;
      // A terminal that is gone ends the command by its signal.
      this.#draw().catch(() => {});
    }, limits.cli_redraw_ms);
  }

  #draw(): Promise<void> {
    const { run, steps } = this.#told;
    const note = this.#lost ? 'the plane does not answer; trying again' : null;
    const board = { title: this.#title, run, steps, reviews: this.#reviews, note };
    const screen = { ...this.#region.size, coloured: colours(this.#io.stdout, this.#io.env) };
    return this.#region.draw(boardLines(board, screen, Date.now()));
  }
}
