/**
 * How components and the screens of a new service look, in both themes and on a phone: compared with the pictures in `visual/`.
 * `web-screens.test.ts` compares the other screens.
 */
import { rm } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { PNG } from 'pngjs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { browserTest, sharedBrowser, signIn } from '../src/testing/browser.ts';
import { firstOf } from '../src/testing/long.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { SteadyProxy } from '../src/testing/steady-proxy.ts';
import { addresses, compareScreens, looks, openStill, SCREENS_ENV } from './visual/compare-screens.ts';
import { buildGallery } from './visual/gallery.ts';
import { compare, expectPicture } from './visual/pictures.ts';
import { entryScreens, newScreens } from './visual/screens.ts';

let plane: TestPlane;
let proxy: SteadyProxy;
const browser = sharedBrowser();
beforeAll(async () => {
  plane = await TestPlane.open({ env: SCREENS_ENV });
  const texts = { [plane.folder]: '/home/ana', ...addresses(plane) };
  proxy = await SteadyProxy.open({ target: plane.url, steps: [Date.now()], texts });
});
afterAll(async () => {
  await proxy.close();
  await plane.close();
});

browserTest('components look as before, light, dark and on a phone', async () => {
  const gallery = await buildGallery();
  try {
    for (const { name, options } of looks) {
      const { page, errors } = await browser.open(plane, { ...options, separate: true });
      await page.emulateMedia({ reducedMotion: 'reduce' });
      await gallery.serve(page);
      await page.goto(`${gallery.url}?theme=${name === 'dark' ? 'dark' : 'light'}`);
      await page.getByRole('region', { name: 'Overlays' }).waitFor();
      const { width, height } = page.viewportSize()!;
      await page.evaluate('document.fonts.ready.then(() => true)');
      // Not a picture of the full page, which would have the controls of a mouse on a phone.
      await page.setViewportSize({ width, height: await pageHeight(page) });
      await expectPicture(page, `components-${name}`);
      await page.setViewportSize({ width, height });
      await page.getByRole('button', { name: 'Open menu' }).click();
      await page.getByRole('menuitem', { name: 'Delete' }).waitFor();
      await expectPicture(page, `menu-${name}`);
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Open dialog' }).click();
      await page.getByRole('button', { name: 'Delete agent' }).waitFor();
      await expectPicture(page, `dialog-${name}`);
      expect(errors).toEqual([]);
    }
  } finally {
    await rm(gallery.folder, { recursive: true, force: true });
  }
});

for (const look of firstOf(1, looks)) {
  browserTest(`the screens of a new service look as before: ${look.name}`, async () => {
    const page = await openStill(browser, proxy, look);
    const options = { url: proxy.url, look: look.name };
    const problems = await compareScreens(page, { ...options, screens: entryScreens });
    await signIn(page, { url: proxy.url, token: plane.token });
    problems.push(...(await compareScreens(page, { ...options, screens: newScreens })));
    expect(problems).toEqual([]);
  });
}

test('the comparison finds a changed word, and ignores a shade that nobody sees', () => {
  const plain = picture(() => 255);
  const shaded = picture(() => 253);
  const written = picture((x, y) => (x > 20 && x < 40 && y > 20 && y < 32 && (x + y) % 3 === 0 ? 40 : 255));
  expect(compare(plain, shaded)).toBeNull();
  expect(compare(plain, written)?.text).toMatch(/pixels of a square differ/);
  expect(
    compare(
      plain,
      picture(() => 255, 65),
    )?.text,
  ).toBe('65 × 64 instead of 64 × 64');
});

const pageHeight = async (page: Page) => Number(await page.evaluate('document.body.scrollHeight'));

function picture(level: (x: number, y: number) => number, width = 64): Buffer {
  const png = new PNG({ width, height: 64 });
  for (let at = 0; at < width * 64; at++) {
    png.data.fill(level(at % width, Math.floor(at / width)), at * 4, at * 4 + 3);
    png.data[at * 4 + 3] = 255;
  }
  return PNG.sync.write(png);
}
