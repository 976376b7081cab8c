/** Content blocks of messages, prompts and tool calls, as text. */
import { fieldsOf, recordsOf, stringOf } from './json.ts';

/** The text of a content block; null if it has none. */
export function blockText(block: unknown): string | null {
  const { type, text, resource } = fieldsOf(block);
  if (type === 'text') return stringOf(text);
  return type === 'resource' ? stringOf(fieldsOf(resource).text) : null;
}

/** The text of a list of blocks, without separators. */
export function blocksText(blocks: readonly unknown[]): string {
  return blocks.map((block) => blockText(block) ?? '').join('');
}

/** The texts in the content of a tool call, without its diffs. */
export function contentTexts(content: unknown): string[] {
  return recordsOf(content).flatMap((part) => blockText(part.content) ?? []);
}
