/**
 * Makes agents' text safe for a terminal. It must not move the cursor, write the clipboard, query the terminal or
 * forge lines of svc. Colors (SGR) may stay, and output that is shown line by line keeps `\n`, `\t` and `\r`.
 */

import { escapeHidden } from '../core/visible.ts';
import { limits } from './limits.ts';

const SEQUENCE =
  // CSI; OSC, DCS, SOS, PM and APC with their strings; other escapes; single control characters.
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)|\x1b[ -/]*[0-~]|[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;
const UNFINISHED =
  /(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*\x1b?|\x1b[ -/]*)$/;
const COLOR = /^\x1b\[[0-9;:]*m$/;
/** Marks that reorder text, and line separators other than `\n`. */
const REORDERING = /[\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** Cleans a stream chunk by chunk; recognizes a sequence that is split between two chunks. */
export class TerminalFilter {
  readonly #colors: boolean;
  #held = '';
  #colored = false;

  constructor(options: { colors: boolean }) {
    this.#colors = options.colors;
  }

  write(piece: string): string {
    const text = this.#held + piece;
    const cut = UNFINISHED.exec(text)?.[0] ?? '';
    this.#held = cut.length <= limits.terminal_sequence_chars_max ? cut : '';
    return text
      .slice(0, text.length - cut.length)
      .replace(SEQUENCE, (found) => {
        if (!this.#colors || !COLOR.test(found)) return '';
        this.#colored = true;
        return found;
      })
      .replace(REORDERING, '');
  }

  /** Ends the stream: resets colors that may still be on. */
  end(): string {
    this.#held = '';
    return this.#colored ? '\x1b[0m' : '';
  }
}

/** Text of several lines: keeps line breaks and tabs, and escapes every other control character. */
export function printableLines(text: string): string {
  return escapeHidden(text.replaceAll('\r\n', '\n').replace(/[\0-\x08\x0b-\x1f\x7f-\x9f]/g, nameControl));
}

/** One field of a table or message: shows control characters as `\x1b`, and others that hide or mislead by their names. */
export function printable(text: string): string {
  return escapeHidden(text.replace(/[\0-\x1f\x7f-\x9f]/g, nameControl));
}

function nameControl(character: string): string {
  return `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`;
}
