/** Keeps the last n lines of a stream. Memory use depends on n only, not on how the stream is cut into chunks. */
export class LastLines {
  readonly #lines: number;
  #kept: { text: string; lines: number }[] = [];
  #count = 0;

  constructor(lines: number) {
    this.#lines = lines;
  }

  get isFull(): boolean {
    return this.#count >= this.#lines;
  }

  add(data: string | Uint8Array): void {
    if (data.length === 0) return;
    // A string of bytes, so that it can be cut into lines without decoding.
    const bytes = typeof data === 'string' ? Buffer.from(data) : data;
    const text = Buffer.from(bytes).toString('latin1');
    const lines = countLines(text);
    this.#kept.push({ text, lines });
    this.#count += lines;
    while (this.#kept.length > 0 && this.#count - this.#kept[0]!.lines > this.#lines) {
      this.#count -= this.#kept.shift()!.lines;
    }
  }

  bytes(): Buffer {
    const text = this.#kept.map((piece) => piece.text).join('');
    const open = text !== '' && !text.endsWith('\n') ? 1 : 0;
    const surplus = Math.max(this.#count + open - this.#lines, 0);
    return Buffer.from(text.slice(startOfLine(text, surplus)), 'latin1');
  }
}

function countLines(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

function startOfLine(text: string, line: number): number {
  let at = 0;
  for (let n = 0; n < line; n++) at = text.indexOf('\n', at) + 1;
  return at;
}
