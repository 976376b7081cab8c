/**
 * The last lines of a terminal, drawn again in place: one write per drawing, each line overwritten before what is left of it is
 * cleared, so that nothing flickers.
 */

import { stripVTControlCharacters } from 'node:util';
import stringWidth from 'string-width';
import type { Io } from './context.ts';
import { print } from './output.ts';

/** A terminal that knows it shows the whole drawing at once; others ignore these. */
const BEGIN = '\x1b[?2026h';
const END = '\x1b[?2026l';

export class LiveRegion {
  readonly #io: Io;
  /** Widths of the lines that stand there. */
  #drawn: number[] = [];

  constructor(io: Io) {
    this.#io = io;
  }

  get size(): { rows: number; columns: number } {
    const { rows, columns } = this.#io.stdout;
    // The cursor stands in a line of its own, below; a line that were full would lose its end as its rest is cleared.
    return { rows: Math.max(1, (rows || 24) - 1), columns: Math.max(1, (columns || 80) - 1) };
  }

  /** `lines`: no longer than the terminal is wide, nothing in them but colours. */
  async draw(lines: readonly string[]): Promise<void> {
    const up = this.#height();
    const body = lines.map((line) => `${line}\x1b[K\n`).join('');
    const start = up === 0 ? '\r' : `\x1b[${up}F`;
    this.#drawn = lines.map((line) => stringWidth(stripVTControlCharacters(line)));
    await print(this.#io, `${BEGIN}${start}${body}\x1b[J${END}`);
  }

  /** Rows that the lines take by now: a terminal that was made narrower has wrapped them. */
  #height(): number {
    const { rows, columns } = this.size;
    const height = this.#drawn.reduce((sum, width) => sum + Math.max(1, Math.ceil(width / (columns + 1))), 0);
    return Math.min(height, rows);
  }
}
