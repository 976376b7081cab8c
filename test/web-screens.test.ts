/**
 * How the screens look, in both themes and on a phone, with the scene of `src/testing/scene.ts`: compared with the pictures in
 * `visual/`. A proxy makes ids, times and measurements equal in all runs. To add a screen, add it to `visual/screens.ts` and run
 * `npm run visual:update`.
 */
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import type { AuditRecord } from '../src/features/audit/rules/audit.ts';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { browserTest, sharedBrowser, signIn } from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { openScene, type Scene } from '../src/testing/scene.ts';
import { NOW, SteadyProxy } from '../src/testing/steady-proxy.ts';
import { root } from './architecture/source.ts';
import { expectPicture } from './visual/pictures.ts';
import { emptyScreens, entryScreens, type ScreenPicture, sceneScreens } from './visual/screens.ts';

const looks = [
  { name: 'light', options: { color_scheme: 'light' } },
  { name: 'dark', options: { color_scheme: 'dark' } },
  { name: 'phone', options: { screen: 'phone', color_scheme: 'light' } },
] as const;
/** Without the agents that this machine may have. */
const ENV = { ...WITH_NODES, PATH: '/usr/bin:/bin' };

const browser = sharedBrowser();
const toClose: { close(): Promise<void> }[] = [];
let scene: Scene;
let plane: TestPlane;
let proxy: SteadyProxy;
let empty: TestPlane;
let empty_proxy: SteadyProxy;

beforeAll(async () => {
  plane = await opened(TestPlane.open({ env: ENV }));
  const node = await opened(TestAgentNode.open(plane, { id: 'gpu-1', env: { PATH: ENV.PATH } }));
  scene = await openScene(plane, node);
  const { steps } = scene;
  const texts = {
    [plane.folder]: '/home/ana',
    [node.folder]: '/home/gpu',
    [node.target]: 'https://10.20.0.4:7443',
    ...addresses(plane),
    [process.execPath]: '/usr/bin/node',
    [join(root, 'src')]: '/opt/svc/src',
    [join(root, 'bin')]: '/opt/svc/bin',
  };
  proxy = await opened(SteadyProxy.open({ target: plane.url, steps, texts }));
  const records = (await plane.client.call('listAudit', { query: {} })) as AuditRecord[];
  proxy.learn(records.reverse());
  proxy.learn(await plane.client.call('listAgents', { query: {} }));
  // The service keeps the answers, so no page waits for a node.
  for (const node_id of ['main', 'gpu-1']) await plane.client.call('listPresets', { query: { node_id } });
  empty = await opened(TestPlane.open({ env: ENV }));
  const empty_texts = { [empty.folder]: '/home/ana', ...addresses(empty) };
  empty_proxy = await opened(
    SteadyProxy.open({ target: empty.url, steps: [Date.now()], texts: empty_texts }),
  );
}, 300_000);
afterAll(async () => {
  for (const each of toClose.reverse()) await each.close();
});

for (const { name: look, options } of looks) {
  browserTest(`screens look as before: ${look}`, { timeout: 300_000 }, async () => {
    const problems: string[] = [];
    const take = async (page: Page, url: string, screens: ScreenPicture[]) => {
      for (const { name, path, ready, ...screen } of screens) {
        if (!(screen.looks ?? [look]).includes(look)) continue;
        await page.goto(url + path);
        const shown = screen.whole || look === 'phone' ? page : page.locator('main');
        try {
          await ready(page);
          await expect.poll(() => page.getByRole('status', { name: 'Loading' }).count()).toBe(0);
          await expectPicture(shown, `${name}-${look}`, { hidden: screen.hidden ?? '[data-badge]' });
        } catch (error) {
          problems.push(`${name}: ${error}`);
        }
      }
    };
    const openPage = async (service: SteadyProxy) => {
      const { page } = await browser.open(service, { ...options, time_zone: 'UTC' });
      await page.emulateMedia({ reducedMotion: 'reduce' });
      await page.clock.setFixedTime(NOW);
      return page;
    };
    const page = await openPage(proxy);
    await take(page, proxy.url, entryScreens);
    await signIn(page, { url: proxy.url, token: plane.token });
    await take(
      page,
      proxy.url,
      sceneScreens(scene, (id) => proxy.shown(id)),
    );
    const first = await openPage(empty_proxy);
    await signIn(first, { url: empty_proxy.url, token: empty.token });
    await take(first, empty_proxy.url, emptyScreens);
    expect(problems).toEqual([]);
  });
}

/** Every way in which a service names its address. */
function addresses({ url }: TestPlane): Record<string, string> {
  const { host, port } = new URL(url);
  return { [host]: '127.0.0.1:4000', [`localhost:${port}`]: 'localhost:4000' };
}

async function opened<T extends { close(): Promise<void> }>(opening: Promise<T>): Promise<T> {
  const one = await opening;
  toClose.push(one);
  return one;
}
