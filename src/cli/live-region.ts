/**
 * Redraws the last lines of a terminal in place. Each redraw is one write, and each line is overwritten before its
 * rest is cleared, so that nothing flickers.
 */

import { stripVTControlCharacters } from 'node:util';
import stringWidth from 'fast-string-width';
import type { Io } from './context.ts';
import { print } from './output.ts';

/** Synchronized output: a terminal that supports it shows each redraw at once; others ignore these sequences. */
const BEGIN = '\x1b[?2026h';
const END = '\x1b[?2026l';

export class LiveRegion {
  readonly #io: Io;
  /** Widths of the lines on the screen. */
  #drawn: number[] = [];

  constructor(io: Io) {
    this.#io = io;
  }

  get size(): { rows: number; columns: number } {
    const { rows, columns } = this.#io.stdout;
    // The cursor stays on its own line below. A line as wide as the terminal would lose its last character when its
    // rest is cleared.
    return { rows: Math.max(1, (rows || 24) - 1), columns: Math.max(1, (columns || 80) - 1) };
  }

  /** `lines`: not wider than the terminal, and without control sequences other than colors. */
  async draw(lines: readonly string[]): Promise<void> {
    const up = this.#height();
    const body = lines.map((line) => `${line}\x1b[K\n`).join('');
    const start = up === 0 ? '\r' : `\x1b[${up}F`;
    this.#drawn = lines.map((line) => stringWidth(stripVTControlCharacters(line)));
    await print(this.#io, `${BEGIN}${start}${body}\x1b[J${END}`);
  }

  /** The number of rows that the lines occupy now: a terminal that became narrower has wrapped them. */
  #height(): number {
    const { rows, columns } = this.size;
    const height = this.#drawn.reduce((sum, width) => sum + Math.max(1, Math.ceil(width / (columns + 1))), 0);
    return Math.min(height, rows);
  }
}
