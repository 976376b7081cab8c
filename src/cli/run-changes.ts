/** A run where no table can be drawn: a line for each change in stdout, or its events as JSON; what waits in stderr. */
import { limits } from '../base/limits.ts';
import type { Frame } from '../contract/client.ts';
import type { Run, Step } from '../domain/run.ts';
import { type Line, paint } from './acp-lines.ts';
import type { Api } from './api.ts';
import type { Io } from './context.ts';
import { tellLink } from './follow.ts';
import { colours, print, say } from './output.ts';
import type { ReviewRecord } from './review-lines.ts';
import { reviewTold } from './run-board.ts';
import { type Question, questionsOf } from './run-lines.ts';
import { type RunView, Told } from './run-told.ts';
import { visible } from './terminal.ts';

export class RunChanges implements RunView {
  readonly #io: Io;
  readonly #plane: Pick<Api, 'url'>;
  readonly #json: boolean;
  readonly #told: Told;
  /** As its lines say that it is. */
  readonly #shown = new Map<string, string>();
  /** Questions that were told and wait: one that is put again in the same words is told again. */
  readonly #asked = new Set<string>();
  /** Reviews that were told. */
  readonly #reviewed = new Set<string>();
  #soon: NodeJS.Timeout | null = null;

  constructor(io: Io, plane: Pick<Api, 'url'>, run: Run, json: boolean) {
    this.#io = io;
    this.#plane = plane;
    this.#json = json;
    this.#told = new Told(run, []);
  }

  async frame(frame: Frame): Promise<void> {
    this.#told.take(frame);
    if (this.#asked.size > 0) this.#forgetAnswered();
    const { data } = frame;
    if (this.#json) await print(this.#io, `${JSON.stringify(data)}\n`);
    else await print(this.#io, this.#line(data));
    // What waits is told once no more comes: in the past of a run most of it was answered.
    if (this.#soon) clearTimeout(this.#soon);
    this.#soon = setTimeout(() => this.#ask(), limits.cli_redraw_ms);
  }

  reviews(waiting: readonly ReviewRecord[]): void {
    for (const review of waiting) this.#tell(this.#reviewed, review.id, reviewTold(review));
  }

  link(lost: boolean): void {
    tellLink(this.#io, this.#plane, lost);
  }

  async end(): Promise<void> {
    if (this.#soon) clearTimeout(this.#soon);
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

  /** `words`: kind, key, member, status, try, why. Nothing where they were told last of this one. */
  #changed(ts: unknown, words: readonly [string, string, ...string[]]): string {
    const line = words.map(visible).join('\t');
    const key = `${words[0]} ${words[1]}`;
    if (this.#shown.get(key) === line) return '';
    this.#shown.set(key, line);
    return `${new Date(Number(ts) * 1000).toISOString()}\t${line}\n`;
  }

  #forgetAnswered(): void {
    const open = new Set(this.#questions().map(({ id }) => id));
    for (const id of this.#asked) if (!open.has(id)) this.#asked.delete(id);
  }

  #ask(): void {
    for (const { id, lines } of this.#questions()) this.#tell(this.#asked, id, lines);
  }

  #questions(): Question[] {
    return questionsOf(this.#told.run, this.#told.steps);
  }

  /** Once, as `told` knows. */
  #tell(told: Set<string>, id: string, lines: readonly Line[]): void {
    if (told.has(id)) return;
    told.add(id);
    const coloured = colours(this.#io.stderr, this.#io.env);
    for (const { text, look } of lines) say(this.#io, paint(text, look, coloured));
  }
}
