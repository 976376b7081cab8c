/** A chapter of the page that `npm run test:agents` writes, and the bench keeps. */
import { readFile, writeFile } from 'node:fs/promises';

const PAGE = new URL('../docs/figures.md', import.meta.url);
const HEAD = '\n## real agents\n';

/** Puts it in the place of the one before, at the end. */
export async function writeAgentsChapter(body: string): Promise<void> {
  await writePage((await readFile(PAGE, 'utf8')).split(HEAD)[0]!, body);
}

/** Writes everything before it anew. */
export async function writeFigures(page: string): Promise<void> {
  const [, body] = (await readFile(PAGE, 'utf8')).split(HEAD);
  if (body === undefined) await writeFile(PAGE, page);
  else await writePage(page, body);
}

async function writePage(page: string, body: string): Promise<void> {
  await writeFile(PAGE, `${page.trimEnd()}\n${HEAD}\n${body.trim()}\n`);
}
