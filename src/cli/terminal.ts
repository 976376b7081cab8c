/**
 * What agents wrote is hostile until proven dull: nothing of it may move the cursor, write the clipboard, ask the
 * terminal questions or forge our own lines. Colours (SGR) may stay, line by line output keeps `\n`, `\t` and `\r`.
 */
import { limits } from '../base/limits.ts';
import { visible as named } from '../domain/visible.ts';

const SEQUENCE =
  // CSI; OSC, DCS, SOS, PM and APC with their strings; other escapes; single control characters.
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)|\x1b[ -/]*[0-~]|[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;
const UNFINISHED =
  /(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*\x1b?|\x1b[ -/]*)$/;
const COLOUR = /^\x1b\[[0-9;:]*m$/;
/** Marks that reorder text, and line separators that are not `\n`. */
const REORDERING = /[\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** Cleans a stream piece by piece: a sequence that a piece cuts in two is still recognised. */
export class TerminalFilter {
  readonly #colours: boolean;
  #held = '';
  #coloured = false;

  constructor(options: { colours: boolean }) {
    this.#colours = options.colours;
  }

  write(piece: string): string {
    const text = this.#held + piece;
    const cut = UNFINISHED.exec(text)?.[0] ?? '';
    this.#held = cut.length <= limits.terminal_sequence_chars_max ? cut : '';
    return text
      .slice(0, text.length - cut.length)
      .replace(SEQUENCE, (found) => {
        if (!this.#colours || !COLOUR.test(found)) return '';
        this.#coloured = true;
        return found;
      })
      .replace(REORDERING, '');
  }

  /** What closes the stream: colours that may still be on go off. */
  end(): string {
    this.#held = '';
    return this.#coloured ? '\x1b[0m' : '';
  }
}

/** Text of many lines: its lines and tabs stay, every other control character is shown. */
export function visibleLines(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(/[^\n\t]+/g, (part) => visible(part));
}

/** One field of a table or message: control characters are shown as `\x1b`, others that hide or mislead by their names. */
export function visible(text: string): string {
  return named(
    text.replace(/[\0-\x1f\x7f-\x9f]/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`),
  );
}
