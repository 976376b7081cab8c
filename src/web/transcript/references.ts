/**
 * Links whose URLs are elsewhere in a Markdown text (`[label]: url`). Blocks are rendered one by one, so each gets a copy of the
 * definitions that it refers to.
 */
import type { fromMarkdown } from 'mdast-util-from-markdown';
import { bounds } from './bounds.ts';

type Root = ReturnType<typeof fromMarkdown>;

/** The source of the first definition of each label. */
export type Definitions = ReadonlyMap<string, string>;

export const noDefinitions: Definitions = new Map();

/** Adds the definitions of a source that end at `end` or before. Returns the same object if there are none. */
export function addDefinitions(
  known: Definitions,
  { children }: Root,
  source: string,
  end: number,
): Definitions {
  const found = new Map(known);
  for (const node of children) {
    const { start, end: last } = node.position!;
    if (last.offset! > end || found.size === bounds.markdown_definitions) break;
    // Footnotes are no links.
    if (node.type !== 'definition' || node.identifier.startsWith('^') || found.has(node.identifier)) continue;
    found.set(node.identifier, source.slice(start.offset, last.offset));
  }
  return found.size > known.size ? found : known;
}

/**
 * An escaped character, or the text between brackets that contain no others. Labels have at most 999 characters, as in
 * CommonMark. No part of a text is tried as a label more than once.
 */
const LABEL = /\\.|\[((?:[^[\]\\]|\\.){1,999})\]/gs;

/** The labels of the definitions that a block may refer to. */
function listLabels(block: string): ReadonlySet<string> {
  const labels = new Set<string>();
  for (const [, label] of block.matchAll(LABEL)) if (label !== undefined) labels.add(normalizeLabel(label));
  return labels;
}

/** As in CommonMark. */
function normalizeLabel(label: string): string {
  return label.replace(/\s+/g, ' ').trim().toUpperCase().toLowerCase();
}

/** Whether a block must stay as it is. */
type IsWhole = (block: string) => boolean;

/** Resolves the references of growing text. Finished blocks are read again only after a definition that they lacked. */
export class References {
  #definitions = noDefinitions;
  #blocks: readonly string[] = [];
  #resolved: readonly string[] = [];
  /** The blocks that use a label without a definition so far, by their index. */
  readonly #lacking = new Map<string, Set<number>>();
  /** The number of characters in copies of definitions. */
  #copied = 0;

  /** The blocks with the definitions that they need. */
  resolve(blocks: readonly string[], definitions: Definitions, isWhole: IsWhole): readonly string[] {
    if (definitions.size === 0) return blocks;
    if (!this.#hasGrown(blocks, definitions)) {
      this.#resolved = [];
      this.#lacking.clear();
      this.#copied = 0;
    }
    const resolved = [...this.#resolved];
    for (const at of this.#listCompleted(definitions)) {
      this.#copied -= resolved[at]!.length - blocks[at]!.length;
      resolved[at] = this.#resolve(at, blocks[at]!, definitions, isWhole);
    }
    for (let at = resolved.length; at < blocks.length; at++) {
      resolved.push(this.#resolve(at, blocks[at]!, definitions, isWhole));
    }
    this.#blocks = blocks;
    this.#definitions = definitions;
    this.#resolved = resolved;
    return resolved;
  }

  #hasGrown(blocks: readonly string[], definitions: Definitions): boolean {
    if (!this.#blocks.every((block, at) => block === blocks[at])) return false;
    if (definitions === this.#definitions) return true;
    return [...this.#definitions].every(([label, definition]) => definitions.get(label) === definition);
  }

  /** The blocks that lacked a definition that is there now. */
  #listCompleted(definitions: Definitions): ReadonlySet<number> {
    const completed = new Set<number>();
    if (definitions === this.#definitions) return completed;
    for (const label of definitions.keys()) {
      for (const at of this.#lacking.get(label) ?? []) completed.add(at);
      this.#lacking.delete(label);
    }
    return completed;
  }

  #resolve(at: number, block: string, definitions: Definitions, isWhole: IsWhole): string {
    if (!block.includes('[') || isWhole(block)) return block;
    const used: string[] = [];
    for (const label of listLabels(block)) {
      const definition = definitions.get(label);
      if (definition === undefined) this.#addLack(label, at);
      else used.push(definition);
    }
    const copies = used.join('\n');
    if (copies === '' || this.#copied + copies.length > bounds.markdown_copied_chars) return block;
    // Before the block, because its end may be open.
    const resolved = `${copies}\n\n${block}`;
    if (isWhole(resolved)) return block;
    this.#copied += resolved.length - block.length;
    return resolved;
  }

  #addLack(label: string, at: number): void {
    const lacking = this.#lacking.get(label);
    if (lacking === undefined) this.#lacking.set(label, new Set([at]));
    else lacking.add(at);
  }
}

/** The start of a line of a list or quote, as far as it cannot be that of indented code. */
const PREFIX = / {0,3}(?:(?:>|(?:[-+*]|\d{1,9}[.)])(?= )) {0,4})*/;
const FOOTNOTE = new RegExp(`(^|\\n)(${PREFIX.source})\\[\\^(?=[^\\]\\s]{1,999}\\]:)`, 'g');

/** In lists and quotes, too. */
const FENCE = /^[ \t>+*\d.)-]*(?:`{3}|~{3})/m;

/**
 * Makes footnotes plain text. As footnotes, they would be numbered in each block anew, and those that other blocks refer to
 * would be left out. Blocks that contain fenced code stay as they are.
 */
export function escapeFootnotes(block: string): string {
  if (!block.includes(']:') || FENCE.test(block)) return block;
  return block.replace(FOOTNOTE, (_, before, prefix) => {
    // Each on its own line. An empty line inside a list would change the distance between its items.
    const end = before === '' ? '' : prefix === '' ? '\n\n' : '  \n';
    return `${end}${prefix}\\[^`;
  });
}
