/** The README's tours as tests run them: a chapter's blocks, with what a test cannot do as a person does put otherwise. */
import { readFile } from 'node:fs/promises';
import { expect } from 'vitest';

/** The commands of the chapter whose title begins so, block by block. */
export async function tourBlocks(chapter: string): Promise<string[]> {
  const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
  const tour = readme.split('\n## ').find((part) => part.startsWith(chapter));
  return [...tour!.matchAll(/^```\n(.*?)^```$/gms)].map(([, block]) => block!);
}

/** The block with these parts put otherwise; each of them must be there. */
export function put(block: string, changes: Record<string, string>): string {
  return Object.entries(changes).reduce((text, [from, to]) => {
    expect(text).toContain(from);
    return text.replaceAll(from, () => to);
  }, block);
}
