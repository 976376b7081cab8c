/** The chapters at the end of figures.md. Each is written by its own command and kept by the others. */
import { readFile, writeFile } from 'node:fs/promises';

const PAGE = new URL('../docs/reference/figures.md', import.meta.url);
/** In the order of the page. */
const kept_chapters = ['web UI', 'real agents', 'faults'] as const;
type Chapter = (typeof kept_chapters)[number];

interface Page {
  /** Everything before the chapters. */
  figures: string;
  chapters: Partial<Record<Chapter, string>>;
}

/** Replaces a chapter. */
export async function writeChapter(name: Chapter, body: string): Promise<void> {
  const { figures, chapters } = await readPage();
  await writePage({ figures, chapters: { ...chapters, [name]: body } });
}

/** The text of a chapter without its heading; empty if the page does not have it yet. */
export async function readChapter(name: Chapter): Promise<string> {
  return (await readPage()).chapters[name] ?? '';
}

/** Replaces everything before the chapters. */
export async function writeFigures(figures: string): Promise<void> {
  await writePage({ ...(await readPage()), figures });
}

async function readPage(): Promise<Page> {
  const text = await readFile(PAGE, 'utf8');
  const page: Page = { figures: '', chapters: {} };
  for (const part of text.split(/^(?=## )/m)) {
    const name = kept_chapters.find((each) => part.startsWith(`${headOf(each)}\n`));
    if (name === undefined) page.figures += part;
    else page.chapters[name] = part.slice(headOf(name).length);
  }
  return page;
}

async function writePage({ figures, chapters }: Page): Promise<void> {
  const parts = kept_chapters.flatMap((name) => {
    const body = chapters[name];
    return body === undefined ? [] : [`${headOf(name)}\n\n${body.trim()}\n`];
  });
  await writeFile(PAGE, [`${figures.trimEnd()}\n`, ...parts].join('\n'));
}

function headOf(name: Chapter): string {
  return `## ${name}`;
}
