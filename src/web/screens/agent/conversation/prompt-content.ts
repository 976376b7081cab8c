/** The content of a prompt as its editor shows it: one text, and everything else, which the editor leaves unchanged (pure). */

export interface Block {
  readonly type: string;
  readonly [field: string]: unknown;
}

const isText = ({ type, text }: Block): boolean => type === 'text' && typeof text === 'string';

/** All text of the prompt, in full. */
export function promptText(content: readonly Block[]): string {
  return content
    .filter(isText)
    .map(({ text }) => text)
    .join('');
}

/** The content with another text, which takes the place of the first one. */
export function withText(content: readonly Block[], text: string): Block[] {
  const first = content.findIndex(isText);
  const kept = content.filter((block, at) => at === first || !isText(block));
  const block = { ...(first < 0 ? {} : content[first]), type: 'text', text };
  return first < 0 ? [block, ...kept] : kept.with(kept.indexOf(content[first]!), block);
}
