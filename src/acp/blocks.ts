/** Content blocks of messages, prompts and tool calls, as text. */
import { asRecord, asRecords, asString } from './json.ts';

/** The text of a content block; null if it has none. */
export function blockText(block: unknown): string | null {
  const { type, text, resource } = asRecord(block);
  if (type === 'text') return asString(text);
  return type === 'resource' ? asString(asRecord(resource).text) : null;
}

/** The text of a list of blocks, without separators. */
export function blocksText(blocks: readonly unknown[]): string {
  return blocks.map((block) => blockText(block) ?? '').join('');
}

/** The texts in the content of a tool call, without its diffs. */
export function contentTexts(content: unknown): string[] {
  return asRecords(content).flatMap((part) => blockText(part.content) ?? []);
}
