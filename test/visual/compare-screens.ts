/** Compares screens with their pictures, in each look. */
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { WITH_NODES } from '../../src/testing/agent-node.ts';
import type { sharedBrowser } from '../../src/testing/browser.ts';
import type { TestPlane } from '../../src/testing/plane.ts';
import { NOW } from '../../src/testing/steady-proxy.ts';
import { expectPicture } from './pictures.ts';
import type { ScreenPicture } from './screens.ts';

export const looks = [
  { name: 'light', options: { color_scheme: 'light' } },
  { name: 'dark', options: { color_scheme: 'dark' } },
  { name: 'phone', options: { screen: 'phone', color_scheme: 'light' } },
] as const;
/** A phone on its side: only for screens whose `looks` contain it. */
export const sideways = {
  name: 'sideways',
  options: { screen: 'sideways', color_scheme: 'light' },
} as const;
export type Look = (typeof looks)[number] | typeof sideways;
const everywhere = looks.map(({ name }) => name);

/** The environment of a service whose screens are compared: without the agents that this machine may have. */
export const SCREENS_ENV = { ...WITH_NODES, PATH: '/usr/bin:/bin' };

/** Every way in which a service names its address, with what the pictures show instead. */
export function addresses({ url }: TestPlane): Record<string, string> {
  const { host, port } = new URL(url);
  return { [host]: '127.0.0.1:4000', [`localhost:${port}`]: 'localhost:4000' };
}

/** A page whose clock stands still. */
export async function openStill(
  browser: ReturnType<typeof sharedBrowser>,
  service: { url: string },
  { options }: Look,
): Promise<Page> {
  const { page } = await browser.open(service, { ...options, time_zone: 'UTC' });
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await page.clock.setFixedTime(NOW);
  return page;
}

/** Visits the screens and returns one text for each that differs from its picture. */
export async function compareScreens(
  page: Page,
  { url, look, screens }: { url: string; look: Look['name']; screens: readonly ScreenPicture[] },
): Promise<string[]> {
  const problems: string[] = [];
  for (const { name, path, ready, ...screen } of screens) {
    if (!(screen.looks ?? everywhere).includes(look)) continue;
    await page.goto(url + path);
    const is_phone = look === 'phone' || look === 'sideways';
    const shown = screen.whole || is_phone ? page : page.locator('main');
    try {
      await ready(page);
      await expect.poll(() => page.getByRole('status', { name: 'Loading' }).count()).toBe(0);
      await expectPicture(shown, `${name}-${look}`, { hidden: screen.hidden ?? '[data-badge]' });
    } catch (error) {
      problems.push(`${name}: ${error}`);
    }
  }
  return problems;
}
