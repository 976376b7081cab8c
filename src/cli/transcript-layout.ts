/**
 * Layout of a conversation in the terminal (pure). An agent's text is printed as it arrives. Lines that svc adds
 * start with a mark that no agent text can contain, so that an agent cannot forge them.
 */
import type { MessageKind } from '../acp/updates.ts';
import { type Line, paint, type TextStyle } from '../features/conversations/commands/acp-lines.ts';
import { printable, printableLines } from './terminal.ts';

const MARK = '┃';
const LABEL_WIDTH = 8;

export class TranscriptLayout {
  readonly #colored: boolean;
  /** The kind of text that may continue; null after a line that svc added. */
  #message_kind: MessageKind | null = null;
  #message_id: string | null = null;
  #by: string | null = null;
  #line_begun = false;
  /** The last lines shown under each label of recurring content. */
  readonly #shown = new Map<string, string[]>();

  constructor(colored: boolean) {
    this.#colored = colored;
  }

  /** Starts another session, in which nothing was shown yet. */
  begin(): void {
    this.#shown.clear();
  }

  /** Ends an open line, so that something else can follow. */
  close(): string {
    const end = this.#line_begun ? '\n' : '';
    this.#message_kind = null;
    this.#line_begun = false;
    return end;
  }

  /**
   * Text that continues the same message. Thoughts are dim and start with `~`. `by`: the name of the sub-agent,
   * written before each of its lines; null for the agent.
   */
  flow(message_kind: MessageKind, message_id: string | null, text: string, by: string | null = null): string {
    const continues =
      this.#message_kind === message_kind && this.#message_id === message_id && this.#by === by;
    const before = continues ? '' : this.close();
    // White space that separates a chunk from the one before it is dropped at the start of a line.
    const content = unmarked(printableLines(continues ? text : text.trimStart()));
    if (content === '') return before;
    const mark = `${by === null ? '' : `${unmarked(by)} │ `}${message_kind === 'thought' ? '~ ' : ''}`;
    const start = this.#line_begun ? '' : mark;
    this.#message_kind = message_kind;
    this.#message_id = message_id;
    this.#by = by;
    this.#line_begun = !content.endsWith('\n');
    if (mark === '') return before + content;
    const lines = start + content.replace(/\n(?!$)/g, () => `\n${mark}`);
    return before + paint(lines, message_kind === 'thought' ? 'dim' : undefined, this.#colored);
  }

  /** Text that was sent to the agent. */
  quote(texts: readonly string[]): string {
    const lines = texts.map((text) => paint(`> ${unmarked(text)}`, 'bold', this.#colored));
    return this.close() + lines.map((line) => `${line}\n`).join('');
  }

  lines(lines: readonly Line[]): string {
    return (
      this.close() +
      lines.map(({ text, style }) => `${MARK} ${paint(unmarked(text), style, this.#colored)}\n`).join('')
    );
  }

  /** A line with a label by svc; `text` must already be free of control characters. */
  line(label: string, text: string, style?: TextStyle): string {
    return this.labeled(label, [{ text, ...(style && { style }) }]);
  }

  labeled(label: string, lines: readonly Line[]): string {
    const start = (at: number) => printable(at === 0 ? label : '').padEnd(LABEL_WIDTH);
    return this.lines(lines.map((line, at) => ({ ...line, text: `${start(at)} ${line.text}` })));
  }

  /** The lines that differ from those last shown under this label by the same author. */
  changes(label: string, lines: readonly Line[], by = ''): string {
    const key = `${label} ${by}`;
    const before = this.#shown.get(key) ?? [''];
    const texts = lines.map(({ text }) => text);
    this.#shown.set(key, texts);
    const changed = lines.filter(({ text }) => !before.includes(text));
    return changed.length === 0 ? '' : this.labeled(label, changed);
  }
}

function unmarked(text: string): string {
  return text.replaceAll(MARK, '\\u2503');
}
