/**
 * How the screens of a service in use look, in both themes, on a phone, and some on a phone on its side, with the scene of
 * `src/testing/scene.ts`: compared with the pictures in `visual/`. A proxy makes ids, times and measurements equal in all runs.
 * To add a screen, add it to `visual/screens.ts` and run `npm run visual:update`. `web-visual.test.ts` compares those of a new
 * service.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import type { AuditRecord } from '../src/features/audit/rules/audit.ts';
import { TestAgentNode } from '../src/testing/agent-node.ts';
import { browserTest, sharedBrowser, signIn } from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { openScene, type Scene } from '../src/testing/scene.ts';
import { SteadyProxy } from '../src/testing/steady-proxy.ts';
import { root } from './architecture/source.ts';
import {
  addresses,
  compareScreens,
  looks,
  openStill,
  SCREENS_ENV,
  sideways,
} from './visual/compare-screens.ts';
import { sceneScreens } from './visual/screens.ts';

const browser = sharedBrowser();
const toClose: { close(): Promise<void> }[] = [];
let scene: Scene;
let plane: TestPlane;
let proxy: SteadyProxy;

beforeAll(async () => {
  plane = await opened(TestPlane.open({ env: SCREENS_ENV }));
  const node = await opened(TestAgentNode.open(plane, { id: 'gpu-1', env: { PATH: SCREENS_ENV.PATH } }));
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
}, 300_000);
afterAll(async () => {
  for (const each of toClose.reverse()) await each.close();
});

for (const look of [...looks, sideways]) {
  browserTest(`screens look as before: ${look.name}`, { timeout: 300_000 }, async () => {
    const page = await openStill(browser, proxy, look);
    await signIn(page, { url: proxy.url, token: plane.token });
    const screens = sceneScreens(scene, (id) => proxy.shown(id));
    expect(await compareScreens(page, { url: proxy.url, look: look.name, screens })).toEqual([]);
  });
}

async function opened<T extends { close(): Promise<void> }>(opening: Promise<T>): Promise<T> {
  const one = await opening;
  toClose.push(one);
  return one;
}
