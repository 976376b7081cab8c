/**
 * A Markdown text that grows, as blocks that are finished and a tail that is not: a finished block never changes again, so it is
 * rendered once. Where blocks end is what the parser says; it reads nothing but the tail.
 */
import { fromMarkdown } from 'mdast-util-from-markdown';

/** A tail that grew by less than a fourth since it was read is not read again: reading it costs what it is long. */
const GROWTH = 4;

type Parse = (source: string) => ReturnType<typeof fromMarkdown>;

export class MarkdownBlocks {
  readonly #parse: Parse;
  #finished: readonly string[] = [];
  /** Characters in them. */
  #done = 0;
  #text = '';
  /** How much of the tail was read last. */
  #read = 0;

  constructor(parse: Parse = fromMarkdown) {
    this.#parse = parse;
  }

  /** Together with the tail, the text to the last character. */
  get finished(): readonly string[] {
    return this.#finished;
  }

  get tail(): string {
    return this.#text.slice(this.#done);
  }

  /** `text`: all of it so far; one that does not go on from before begins anew. */
  update(text: string): void {
    if (!text.startsWith(this.#text)) {
      this.#finished = [];
      this.#done = 0;
      this.#read = 0;
    }
    this.#text = text;
    // What a line is, is certain once it has ended.
    const readable = text.lastIndexOf('\n') + 1 - this.#done;
    if (readable <= 0 || readable < this.#read + this.#read / GROWTH) return;
    const source = text.slice(this.#done, this.#done + readable);
    // Nothing can be added to a block after which another one has begun.
    const ends = startsOf(this.#parse(source), source).slice(1);
    this.#finish(ends, source);
    this.#read = readable - (ends.at(-1) ?? 0);
  }

  #finish(ends: readonly number[], source: string): void {
    if (ends.length === 0) return;
    const blocks = ends.map((end, at) => source.slice(ends[at - 1] ?? 0, end));
    this.#finished = [...this.#finished, ...blocks];
    this.#done += ends.at(-1)!;
  }
}

/** The blocks of a text that is complete. */
export function blocksOf(text: string): string[] {
  const ends = startsOf(fromMarkdown(text), text).slice(1);
  return [...ends, text.length].map((end, at) => text.slice(ends[at - 1] ?? 0, end)).filter((block) => block);
}

/** Offsets at which the blocks of a source begin. */
function startsOf({ children }: ReturnType<Parse>, source: string): number[] {
  const starts: number[] = [];
  for (const [at, { position }] of children.entries()) {
    const before = children[at - 1];
    const from = position!.start.offset!;
    // The title of a definition may go on where a paragraph seems to begin.
    const gap = before ? source.slice(before.position!.end.offset, from) : '';
    if (before?.type === 'definition' && !/\n[ \t]*\r?\n/.test(gap)) continue;
    starts.push(lineStart(source, from));
  }
  return starts;
}

/** The spaces before a block are its own: in a list or a code block they mean something. */
function lineStart(source: string, offset: number): number {
  return source.lastIndexOf('\n', offset - 1) + 1;
}

export interface OpenFence {
  /** The word after the fence. */
  readonly language: string;
  readonly code: string;
}

/** The code of a tail that is a fenced block which has not ended: it is shown as it is, without being parsed again and again. */
export function openFence(tail: string): OpenFence | null {
  // Whole fences only: otherwise a long one without a line end would be tried at each of its lengths.
  const opening = /^ {0,3}(`{3,}(?!`)|~{3,}(?!~))([^\n]*)\n/.exec(tail);
  if (!opening) return null;
  const [line, fence, info] = opening as unknown as [string, string, string];
  if (fence.startsWith('`') && info.includes('`')) return null;
  const code = tail.slice(line.length);
  const closing = new RegExp(`^ {0,3}${fence[0]}{${fence.length},}[ \\t]*$`, 'm');
  return closing.test(code) ? null : { language: info.trim().split(/\s/)[0]!, code };
}
