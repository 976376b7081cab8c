/**
 * Pictures of screens, compared with those in this folder. `npm run visual:update` takes them again. What differs is written to
 * a temporary folder, which the failure names.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pixelmatch from 'pixelmatch';
import type { Locator, Page } from 'playwright-core';
import { PNG } from 'pngjs';
import { expect } from 'vitest';
import { root } from '../architecture/source.ts';

const folder = join(root, 'test/visual');
const updates = process.env.SVC_VISUAL === 'update';
/** How many pixels of any square of this size may differ: less than a stroke of text, more than rounding of an edge. */
const WINDOW = { size: 16, pixels_max: 12 };

/** Times keep their place. The page's policy forbids style elements, but not this. Fonts are loaded afterwards. */
const HIDE_TIMES = `(() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync('time { visibility: hidden !important }');
  document.adoptedStyleSheets = [sheet];
  return document.fonts.ready.then(() => true);
})()`;

/** Takes a picture without motion, caret and times, and compares it. */
export async function expectPicture(shown: Page | Locator, name: string): Promise<void> {
  await ('page' in shown ? shown.page() : shown).evaluate(HIDE_TIMES);
  const taken = await shown.screenshot({ animations: 'disabled', caret: 'hide', scale: 'css' });
  const path = join(folder, `${name}.png`);
  if (updates) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(path, taken);
    return;
  }
  expect(existsSync(path), `${name}.png is missing; npm run visual:update takes it`).toBe(true);
  const difference = compare(readFileSync(path), taken);
  if (difference === null) return;
  const kept = mkdtempSync(join(tmpdir(), 'svc-visual-'));
  writeFileSync(join(kept, `${name}.png`), taken);
  if (difference.picture) writeFileSync(join(kept, `${name}.difference.png`), difference.picture);
  expect.fail(`${name}: ${difference.text}; see ${kept}. If it is right, run npm run visual:update`);
}

/** Null if they look the same. */
export function compare(expected: Buffer, actual: Buffer): { text: string; picture: Buffer | null } | null {
  const [before, after] = [PNG.sync.read(expected), PNG.sync.read(actual)];
  const { width, height } = before;
  if (after.width !== width || after.height !== height) {
    return { text: `${after.width} × ${after.height} instead of ${width} × ${height}`, picture: null };
  }
  const shown = new PNG({ width, height });
  const worst = pixelmatch(before.data, after.data, shown.data, width, height, {
    threshold: 0.15,
    windowSize: WINDOW.size,
  });
  if (worst <= WINDOW.pixels_max) return null;
  const text = `${worst} of ${WINDOW.size ** 2} pixels of a square differ`;
  return { text, picture: PNG.sync.write(shown) };
}
