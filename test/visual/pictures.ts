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
import { sleep } from '../../src/base/async.ts';
import { root } from '../architecture/source.ts';

const folder = join(root, 'test/visual');
const updates = process.env.SVC_VISUAL === 'update';
/** How many pixels of any square of this size may differ: less than a stroke of text, more than rounding of an edge. */
const WINDOW = { size: 16, pixels_max: 12 };

/**
 * How long screens may take in all until they look as expected, for example because they are still loading on a slow machine.
 * Shared by the pictures of a test file, so that a change of all screens is reported within minutes.
 */
const patience = { left_ms: 60_000, least_ms: 2_000 };
const PAUSE_MS = 250;

export interface PictureOptions {
  /** A selector of elements that differ between runs. They keep their place. */
  hidden?: string;
}

/** The page's policy forbids style elements, but not this. Fonts are loaded afterwards. */
const hide = (selector: string) => `(() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(${JSON.stringify(`${selector} { visibility: hidden !important }`)});
  document.adoptedStyleSheets = [sheet];
  return document.fonts.ready.then(() => true);
})()`;

/** Takes a picture without motion, caret and times, and compares it. */
export async function expectPicture(
  shown: Page | Locator,
  name: string,
  { hidden = 'time' }: PictureOptions = {},
): Promise<void> {
  await ('page' in shown ? shown.page() : shown).evaluate(hide(hidden));
  const take = () => shown.screenshot({ animations: 'disabled', caret: 'hide', scale: 'css' });
  const path = join(folder, `${name}.png`);
  if (updates) return update(path, take);
  expect(existsSync(path), `${name}.png is missing; npm run visual:update takes it`).toBe(true);
  const expected = readFileSync(path);
  const start = Date.now();
  const end = start + Math.max(patience.left_ms, patience.least_ms);
  let taken = await take();
  let difference = compare(expected, taken);
  while (difference !== null && Date.now() < end) {
    await sleep(PAUSE_MS);
    taken = await take();
    difference = compare(expected, taken);
  }
  patience.left_ms -= Date.now() - start;
  if (difference === null) return;
  const kept = mkdtempSync(join(tmpdir(), 'svc-visual-'));
  writeFileSync(join(kept, `${name}.png`), taken);
  if (difference.picture) writeFileSync(join(kept, `${name}.difference.png`), difference.picture);
  expect.fail(`${name}: ${difference.text}; see ${kept}. If it is right, run npm run visual:update`);
}

/** Writes a picture once it no longer changes, unless the one that exists looks the same. */
async function update(path: string, take: () => Promise<Buffer>): Promise<void> {
  let taken = await take();
  for (let before: Buffer | null = null; before === null || !taken.equals(before); ) {
    await sleep(PAUSE_MS);
    before = taken;
    taken = await take();
  }
  if (existsSync(path) && compare(readFileSync(path), taken) === null) return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(path, smaller(taken));
}

/** Edges of letters have hundreds of shades. With steps between them, which nobody sees, the file is a third smaller. */
const SHADES = { step: 17, common_pixels: 4000 };

/** A picture that looks the same, in a smaller file. The colors of surfaces stay as they are. */
function smaller(taken: Buffer): Buffer {
  const picture = PNG.sync.read(taken);
  const pixels = new Uint32Array(picture.data.buffer, picture.data.byteOffset, picture.data.length / 4);
  const counts = new Map<number, number>();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  for (const [at, pixel] of pixels.entries()) {
    if (counts.get(pixel)! >= SHADES.common_pixels) continue;
    for (let byte = at * 4; byte < at * 4 + 3; byte++) {
      picture.data[byte] = Math.round(picture.data[byte]! / SHADES.step) * SHADES.step;
    }
  }
  return PNG.sync.write(picture, { colorType: 2, deflateLevel: 9, filterType: 4 });
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
