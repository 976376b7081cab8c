/**
 * Splits a growing Markdown text into finished blocks and an unfinished tail. A finished block never changes again, so it is rendered
 * once. The parser decides where blocks end, and reads only the tail.
 */
import { fromMarkdown } from 'mdast-util-from-markdown';
import { bounds } from './bounds.ts';
import { addDefinitions, type Definitions, noDefinitions } from './references.ts';

/** A tail is parsed again only after it has grown by a fourth, because the cost grows with its length. */
const GROWTH = 4;

type Parse = (source: string) => ReturnType<typeof fromMarkdown>;

/** Where blocks end does not depend on inline markup, which is slow to parse if there is much of it. */
const WITHOUT_INLINE = {
  disable: {
    null: [
      ...['attention', 'autolink', 'characterEscape', 'characterReference', 'codeText', 'hardBreakEscape'],
      ...['htmlText', 'labelEnd', 'labelStartImage', 'labelStartLink'],
    ],
  },
};

/** The start of a line, which opens lists and quotes. */
const OPENING = new RegExp(
  `^(?:[ \\t]|>|[-+*](?=[ \\t]|$)|\\d{1,9}[.)](?=[ \\t]|$)){1,${bounds.markdown_opening_chars + 1}}`,
  'gm',
);
const CONTAINER = /[-+*>.)]/g;
const INLINE = /[*_~[\]]/g;
/** What begins HTML or the title of a link, where its end may be missing. */
const SCANNED = /<|\]\(\S{0,99}\s+["'(]/g;
const ADDRESS = /:\/\/|www\./i;
/** What does not belong to a URL if nothing else follows. */
const TAIL = new RegExp(`(?:&[a-z\\d]*|[!"'),.:;<>?\\]*_~}]){${bounds.markdown_tail_chars + 1}}`, 'i');
const LINE_END = /\r?\n|\r/g;
/** A line that may separate the head of a table from its rows. */
const DELIMITERS = /^[ \t>]*[|:-][ \t|:-]*$/gm;
/** What rendering a row of a table costs besides its cells, in cells. */
const ROW_CELLS = 4;

export class MarkdownBlocks {
  readonly #parse: Parse;
  #finished: readonly string[] = [];
  /** The number of characters in them. */
  #done = 0;
  #text = '';
  /** The length of the tail when it was last parsed. */
  #read = 0;
  /** The number of lists and quotes in the finished blocks. */
  #containers = 0;
  #is_too_nested = false;
  #definitions = noDefinitions;

  constructor(parse: Parse = parseBlocks) {
    this.#parse = parse;
  }

  /** Together with the tail, the whole text. */
  get finished(): readonly string[] {
    return this.#finished;
  }

  /**
   * Whether there are too many lists and quotes, or too deeply nested ones, so that the text is shown unparsed: parsers
   * take quadratic time for them, and fail at some depth. Such a text is not split any further.
   */
  get is_too_nested(): boolean {
    return this.#is_too_nested;
  }

  /** The definitions of links in the finished blocks. */
  get definitions(): Definitions {
    return this.#definitions;
  }

  get tail(): string {
    return this.#text.slice(this.#done);
  }

  /** `text`: all of it so far. A text that does not continue the earlier one replaces it. */
  update(text: string): void {
    // Not `startsWith`, which takes 72 µs for 100,000 characters and one more word in Node. This takes 12 µs.
    if (text.slice(0, this.#text.length) !== this.#text) {
      this.#finished = [];
      this.#done = 0;
      this.#read = 0;
      this.#containers = 0;
      this.#is_too_nested = false;
      this.#definitions = noDefinitions;
    }
    this.#text = text;
    this.#is_too_nested ||= this.#containers + countContainers(this.tail) > bounds.markdown_containers;
    if (this.#is_too_nested) return;
    // An unfinished line may still change its meaning.
    const readable = text.lastIndexOf('\n') + 1 - this.#done;
    if (readable <= 0 || readable < this.#read + this.#read / GROWTH) return;
    const source = text.slice(this.#done, this.#done + readable);
    // A block cannot change once another one has started after it.
    const root = this.#parse(source);
    const ends = listStarts(root, source).slice(1);
    const end = ends.at(-1) ?? 0;
    this.#definitions = addDefinitions(this.#definitions, root, source, end);
    this.#finish(ends, source);
    this.#read = readable - end;
  }

  #finish(ends: readonly number[], source: string): void {
    if (ends.length === 0) return;
    const blocks = ends.map((end, at) => source.slice(ends[at - 1] ?? 0, end));
    this.#finished = [...this.#finished, ...blocks];
    for (const block of blocks) this.#containers += countContainers(block);
    this.#done += ends.at(-1)!;
  }
}

/** The blocks of a complete text, and its definitions after those that are `known`. */
export function splitBlocks(
  text: string,
  known = noDefinitions,
): { blocks: string[]; definitions: Definitions } {
  const root = parseBlocks(text);
  const ends = listStarts(root, text).slice(1);
  const parts = [...ends, text.length].map((end, at) => text.slice(ends[at - 1] ?? 0, end));
  return {
    blocks: parts.filter((block) => block),
    definitions: addDefinitions(known, root, text, text.length),
  };
}

function parseBlocks(source: string): ReturnType<Parse> {
  return fromMarkdown(source, { extensions: [WITHOUT_INLINE] });
}

/** The number of lists and quotes that its lines open; infinite if a single line opens too many. */
function countContainers(text: string): number {
  let containers = 0;
  for (const [opening] of text.matchAll(OPENING)) {
    if (opening.length > bounds.markdown_opening_chars) return Number.POSITIVE_INFINITY;
    containers += countMatches(opening, CONTAINER);
  }
  return containers;
}

/**
 * Whether a block may take too long to parse or to render, so that it is shown unparsed. The code of the fence that it begins
 * with does not count.
 */
export function isTooMarked(block: string): boolean {
  const text = block.slice(fenceEnd(block));
  return (
    countMatches(text, INLINE) > bounds.markdown_marks ||
    countMatches(text, SCANNED) * text.length > bounds.markdown_scanned_chars ||
    (ADDRESS.test(text) && TAIL.test(text)) ||
    countMatches(text, LINE_END) * (1 + countColumns(text) / ROW_CELLS) > bounds.markdown_lines
  );
}

/** Where the fenced code that a block begins with ends. */
function fenceEnd(block: string): number {
  const [line, fence] = parseFence(block) ?? [];
  if (line === undefined) return 0;
  const closing = closingOf(fence!).exec(block.slice(line.length));
  return closing ? line.length + closing.index + closing[0].length : block.length;
}

/** Of the widest table; 0 if there is none. */
function countColumns(text: string): number {
  let columns = 0;
  for (const [line] of text.matchAll(DELIMITERS)) columns = Math.max(columns, line.split('|').length);
  return columns;
}

/** Whether a block begins with a code fence. */
export function isFenced(block: string): boolean {
  return parseFence(block) !== null;
}

function countMatches(text: string, pattern: RegExp): number {
  let count = 0;
  for (const _ of text.matchAll(pattern)) count++;
  return count;
}

/** Offsets at which the blocks of a source begin. */
function listStarts({ children }: ReturnType<Parse>, source: string): number[] {
  const starts: number[] = [];
  for (const [at, { position }] of children.entries()) {
    const before = children[at - 1];
    const from = position!.start.offset!;
    // The title of a definition may continue where a paragraph seems to begin.
    const gap = before ? source.slice(before.position!.end.offset, from) : '';
    if (before?.type === 'definition' && !/\n[ \t]*\r?\n/.test(gap)) continue;
    starts.push(lineStart(source, from));
  }
  return starts;
}

/** A block includes the spaces before it, which have a meaning in lists and code blocks. */
function lineStart(source: string, offset: number): number {
  return source.lastIndexOf('\n', offset - 1) + 1;
}

export interface OpenFence {
  /** The word after the fence. */
  readonly language: string;
  readonly code: string;
}

/** The code of a tail that is an unfinished fenced block. It is shown as it is, instead of being parsed repeatedly. */
export function openFence(tail: string): OpenFence | null {
  const opening = parseFence(tail);
  if (!opening) return null;
  const [line, fence, info] = opening;
  const code = tail.slice(line.length);
  return closingOf(fence).test(code) ? null : { language: info.trim().split(/\s/)[0]!, code };
}

function closingOf(fence: string): RegExp {
  return new RegExp(`^ {0,3}${fence[0]}{${fence.length},}[ \\t]*$`, 'm');
}

/** The opening line of a fenced block, its fence, and what follows. */
function parseFence(text: string): [line: string, fence: string, info: string] | null {
  // Match whole fences only: otherwise a long unterminated one would be tried at every length.
  const opening = /^ {0,3}(`{3,}(?!`)|~{3,}(?!~))([^\n]*)\n/.exec(text);
  if (!opening) return null;
  const [line, fence, info] = opening as unknown as [string, string, string];
  return fence.startsWith('`') && info.includes('`') ? null : [line, fence, info];
}
