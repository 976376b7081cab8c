/** Archiving agents in the web UI. */
import { afterAll, beforeAll, expect } from 'vitest';
import { browserTest, sharedBrowser, signIn } from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';

let plane: TestPlane;
const browser = sharedBrowser();

beforeAll(async () => {
  plane = await TestPlane.open();
});
afterAll(() => plane?.close());

browserTest(
  'an archived agent leaves the list, is found behind its filter, and returns when it starts',
  async () => {
    const broken = await plane.agent('exit 7', { name: 'broken' });
    await plane.finished(broken.id);
    await plane.agent('exec sleep 600', { name: 'busy' });
    const { page, errors } = await browser.open(plane);
    await signIn(page, plane);
    await page.goto(`${plane.url}/agents`);
    const row = (name: string) => page.getByRole('link', { name, exact: true });
    const filter = (name: string) =>
      page.getByRole('navigation', { name: 'Show' }).getByRole('link', { name });
    const choose = async (name: string, item: string) => {
      await page.getByRole('button', { name: `More actions for ${name}` }).click();
      await page.getByRole('menuitem', { name: item }).click();
    };
    await row('broken').waitFor();
    expect(await filter('Archived').count()).toBe(0);

    await choose('broken', 'Archive');
    await row('broken').waitFor({ state: 'detached' });
    await row('busy').waitFor();
    await expect.poll(() => filter('All').textContent()).toBe('All1');
    expect(await filter('Failed').textContent()).toBe('Failed0');
    // One that runs cannot be archived.
    await page.getByRole('button', { name: 'More actions for busy' }).click();
    await page.getByRole('menuitem', { name: 'Stop' }).waitFor();
    expect(await page.getByRole('menuitem', { name: 'Archive' }).count()).toBe(0);
    await page.keyboard.press('Escape');

    const search = page.getByRole('searchbox', { name: 'Filter agents' });
    await search.fill('broken');
    await page.getByRole('link', { name: 'Show 1 archived' }).click();
    await row('broken').waitFor();
    expect(await filter('Archived').getAttribute('aria-current')).not.toBeNull();
    await choose('broken', 'Unarchive');
    await row('broken').waitFor({ state: 'detached' });
    await page.goto(`${plane.url}/agents`);
    await row('broken').click();

    await page.getByRole('button', { name: 'More', exact: true }).click();
    await page.getByRole('menuitem', { name: 'Archive' }).click();
    await page.getByText('Archived since').waitFor();
    await page.getByRole('button', { name: 'Restart', exact: true }).click();
    await page.getByText('Archived since').waitFor({ state: 'detached' });
    expect((await plane.get(broken.id)).archived_at).toBeNull();
    expect(errors).toEqual([]);
  },
);
