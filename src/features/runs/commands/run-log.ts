/** Shows a run without a table: a line per change on stdout, or events as JSON; what needs an answer goes to stderr. */

import type { Api } from '../../../cli/api.ts';
import type { Io } from '../../../cli/context.ts';
import { jsonText, print, printStatus, supportsColor } from '../../../cli/output.ts';
import { printable } from '../../../cli/terminal.ts';
import type { Frame } from '../../../client/client.ts';
import { reportConnection } from '../../agents/commands/follow.ts';
import { type Line, paint } from '../../conversations/commands/acp-lines.ts';
import type { ReviewRecord } from '../../reviews/commands/review-lines.ts';
import { limits } from '../limits.ts';
import type { Run, Step } from '../rules/run.ts';
import { reviewSummary } from './run-board.ts';
import { listQuestions, type Question } from './run-lines.ts';
import { RunState, type RunView } from './run-state.ts';

export class RunLog implements RunView {
  readonly #io: Io;
  readonly #plane: Pick<Api, 'url'>;
  readonly #json: boolean;
  readonly #state: RunState;
  /** The last line of the run and of each step. */
  readonly #shown = new Map<string, string>();
  /** Ids of pending questions that were shown. An answered question is forgotten, so that it is shown again if it is asked again. */
  readonly #shown_questions = new Set<string>();
  /** Ids of reviews that were shown. */
  readonly #shown_reviews = new Set<string>();
  #pending: NodeJS.Timeout | null = null;

  constructor(io: Io, plane: Pick<Api, 'url'>, run: Run, json: boolean) {
    this.#io = io;
    this.#plane = plane;
    this.#json = json;
    this.#state = new RunState(run, []);
  }

  async frame(frame: Frame): Promise<void> {
    this.#state.apply(frame);
    if (this.#shown_questions.size > 0) this.#forgetAnswered();
    const { data } = frame;
    if (this.#json) await print(this.#io, jsonText(data));
    else await print(this.#io, this.#line(data));
    // The stream starts with past changes, whose questions have mostly been answered, so questions are shown only when frames
    // stop arriving.
    if (this.#pending) clearTimeout(this.#pending);
    this.#pending = setTimeout(() => this.#showQuestions(), limits.cli_redraw_ms);
  }

  reviews(waiting: readonly ReviewRecord[]): void {
    for (const review of waiting) this.#showOnce(this.#shown_reviews, review.id, reviewSummary(review));
  }

  connection(lost: boolean): void {
    reportConnection(this.#io, this.#plane, lost);
  }

  async end(): Promise<void> {
    if (this.#pending) clearTimeout(this.#pending);
  }

  #line({ type, ts, record }: Frame['data']): string {
    if (type === 'run') {
      const { id, status, attempt, error, attention } = record as Run;
      return this.#changed(ts, ['run', id, '-', status, String(attempt), error ?? attention ?? '-']);
    }
    if (type !== 'step') return '';
    const { step_key, member_id, status, attempt, error_text } = record as Step;
    return this.#changed(ts, ['step', step_key, member_id, status, String(attempt), error_text ?? '-']);
  }

  /** `cells`: kind, key, member, status, attempt, reason. Empty if they equal the last line of this run or step. */
  #changed(ts: unknown, cells: readonly [string, string, ...string[]]): string {
    const line = cells.map(printable).join('\t');
    const key = `${cells[0]} ${cells[1]}`;
    if (this.#shown.get(key) === line) return '';
    this.#shown.set(key, line);
    return `${new Date(Number(ts) * 1000).toISOString()}\t${line}\n`;
  }

  #forgetAnswered(): void {
    const open = new Set(this.#questions().map(({ id }) => id));
    for (const id of this.#shown_questions) if (!open.has(id)) this.#shown_questions.delete(id);
  }

  #showQuestions(): void {
    for (const { id, lines } of this.#questions()) this.#showOnce(this.#shown_questions, id, lines);
  }

  #questions(): Question[] {
    return listQuestions(this.#state.run, this.#state.steps);
  }

  /** Shows the lines unless `shown` has the id. */
  #showOnce(shown: Set<string>, id: string, lines: readonly Line[]): void {
    if (shown.has(id)) return;
    shown.add(id);
    const colored = supportsColor(this.#io.stderr, this.#io.env);
    for (const { text, style } of lines) printStatus(this.#io, paint(text, style, colored));
  }
}
