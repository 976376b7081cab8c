/** Reads the commands of tutorials and guides, so that tests can run them with small changes. */
import { readFile } from 'node:fs/promises';
import { expect } from 'vitest';

/**
 * The code blocks of a section of `docs/tutorials/<page>.md`, or of the whole page. Omits blocks with a language, such as `sh`,
 * because they start the service.
 */
export async function tutorialBlocks(page: string, section?: string): Promise<string[]> {
  return blocksOf(`docs/tutorials/${page}.md`, section);
}

/** The same for a section of the README. */
export function readmeBlocks(section: string): Promise<string[]> {
  return blocksOf('README.md', section);
}

/** The blocks of a section of `docs/how-to/<page>.md` that are in a language. */
export function guideBlocks(page: string, section: string, language = 'sh'): Promise<string[]> {
  return blocksOf(`docs/how-to/${page}.md`, section, language);
}

async function blocksOf(path: string, section?: string, wanted = ''): Promise<string[]> {
  const text = await readFile(new URL(`../../${path}`, import.meta.url), 'utf8');
  const part =
    section === undefined ? text : text.split('\n## ').find((one) => one.startsWith(`${section}\n`));
  const blocks = [...part!.matchAll(/^ *```(\w*)\n(.*?)^ *```$/gms)];
  return blocks.flatMap(([, language, block]) => (language === wanted ? [block!] : []));
}

/** Replaces parts of a block; each must occur in it. */
export function put(block: string, changes: Record<string, string>): string {
  return Object.entries(changes).reduce((text, [from, to]) => {
    expect(text).toContain(from);
    return text.replaceAll(from, () => to);
  }, block);
}
