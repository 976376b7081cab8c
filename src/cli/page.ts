/**
 * How a conversation stands on the page (pure): an agent's words flow as they come; lines of ours stand behind a mark that no
 * words of an agent can hold, so that none of them are taken for ours.
 */
import { type Line, type Look, paint } from './acp-lines.ts';
import { visible, visibleLines } from './terminal.ts';

const MARK = '┃';
const LABEL_WIDTH = 8;

export type Voice = 'message' | 'thought';

export class Page {
  readonly #coloured: boolean;
  /** Whose words may go on. */
  #voice: Voice | null = null;
  #message_id: string | null = null;
  #line_begun = false;
  /** What is told again and again, as it was told last. */
  readonly #told = new Map<string, string[]>();

  constructor(coloured: boolean) {
    this.#coloured = coloured;
  }

  /** Another session: nothing was told in it. */
  begin(): void {
    this.#told.clear();
  }

  /** Ends a line that is open, so that something else can follow. */
  close(): string {
    const end = this.#line_begun ? '\n' : '';
    this.#voice = null;
    this.#line_begun = false;
    return end;
  }

  /** Words that go on where those of the same message ended. Thoughts are dim, and behind `~`. */
  flow(voice: Voice, message_id: string | null, text: string): string {
    const goes_on = this.#voice === voice && this.#message_id === message_id;
    const before = goes_on ? '' : this.close();
    // What parts a word from the one before it is no part of a line that begins.
    const words = unmarked(visibleLines(goes_on ? text : text.trimStart()));
    if (words === '') return before;
    const start = this.#line_begun ? '' : '~ ';
    this.#voice = voice;
    this.#message_id = message_id;
    this.#line_begun = !words.endsWith('\n');
    if (voice === 'message') return before + words;
    return before + paint(start + words.replace(/\n(?!$)/g, '\n~ '), 'dim', this.#coloured);
  }

  /** What somebody said to the agent. */
  quote(texts: readonly string[]): string {
    const lines = texts.map((text) => paint(`> ${unmarked(text)}`, 'bold', this.#coloured));
    return this.close() + lines.map((line) => `${line}\n`).join('');
  }

  lines(lines: readonly Line[]): string {
    return (
      this.close() +
      lines.map(({ text, look }) => `${MARK} ${paint(unmarked(text), look, this.#coloured)}\n`).join('')
    );
  }

  /** A line with a label, which is ours, and a text that is visible already. */
  line(label: string, text: string, look?: Look): string {
    return this.labelled(label, [{ text, ...(look && { look }) }]);
  }

  labelled(label: string, lines: readonly Line[]): string {
    const start = (at: number) => visible(at === 0 ? label : '').padEnd(LABEL_WIDTH);
    return this.lines(lines.map((line, at) => ({ ...line, text: `${start(at)} ${line.text}` })));
  }

  /** Those of the lines that were not told under this label the last time. */
  changes(label: string, lines: readonly Line[]): string {
    const before = this.#told.get(label) ?? [''];
    const texts = lines.map(({ text }) => text);
    this.#told.set(label, texts);
    const changed = lines.filter(({ text }) => !before.includes(text));
    return changed.length === 0 ? '' : this.labelled(label, changed);
  }
}

function unmarked(text: string): string {
  return text.replaceAll(MARK, '\\u2503');
}
