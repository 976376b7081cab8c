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

/** The text between brackets that contain no others. */
const LABEL = /\[((?:[^[\]\\]|\\.)+)\]/gs;

/** The definitions that a block may refer to. */
function findDefinitions(block: string, definitions: Definitions): string {
  const used = new Set<string>();
  for (const [, label] of block.matchAll(LABEL)) {
    const definition = definitions.get(normalizeLabel(label!));
    if (definition !== undefined) used.add(definition);
  }
  return [...used].join('\n');
}

/** As in CommonMark. */
function normalizeLabel(label: string): string {
  return label.replace(/\s+/g, ' ').trim().toUpperCase().toLowerCase();
}

/** Resolves the references of growing text. Finished blocks are read again only after another definition. */
export class References {
  #definitions = noDefinitions;
  #blocks: readonly string[] = [];
  #resolved: readonly string[] = [];
  /** The number of characters in copies of definitions. */
  #copied = 0;

  /** The blocks with the definitions that they need. `isWhole`: whether a block must stay as it is. */
  resolve(
    blocks: readonly string[],
    definitions: Definitions,
    isWhole: (block: string) => boolean,
  ): readonly string[] {
    if (definitions.size === 0) return blocks;
    const has_grown =
      definitions === this.#definitions && this.#blocks.every((block, at) => block === blocks[at]);
    if (!has_grown) {
      this.#resolved = [];
      this.#copied = 0;
    }
    const more = blocks
      .slice(this.#resolved.length)
      .map((block) => this.#resolve(block, definitions, isWhole));
    if (more.length > 0) this.#resolved = [...this.#resolved, ...more];
    this.#blocks = blocks;
    this.#definitions = definitions;
    return this.#resolved;
  }

  #resolve(block: string, definitions: Definitions, isWhole: (block: string) => boolean): string {
    if (!block.includes('[') || isWhole(block)) return block;
    const copies = findDefinitions(block, definitions);
    if (copies === '' || this.#copied + copies.length > bounds.markdown_copied_chars) return block;
    // Before the block, because its end may be open.
    const resolved = `${copies}\n\n${block}`;
    if (isWhole(resolved)) return block;
    this.#copied += copies.length;
    return resolved;
  }
}

/**
 * Makes footnotes plain text. As footnotes, they would be numbered in each block anew, and those that other blocks refer to
 * would be left out.
 */
export function escapeFootnotes(block: string): string {
  if (!block.includes(']:') || /^ *(?:`{3}|~{3})/m.test(block)) return block;
  return block.replace(/(^|\n)( {0,3})\[\^(?=[^\]\s]+\]:)/g, (_, before, indent) =>
    before === '' ? `${indent}\\[^` : `\n\n${indent}\\[^`,
  );
}
