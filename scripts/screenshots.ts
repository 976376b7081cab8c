/**
 * `npm run screenshots`: takes pictures of the main screens of the web UI for `docs/images/`, from a temporary service. Needs
 * Chromium.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { sleep } from '../src/base/async.ts';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { openBrowser, type screens, signIn } from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { openScene, type Scene } from '../src/testing/scene.ts';
import { root } from './run.ts';

const images = join(root, 'docs/images');
/** The screens to take again; all by default. */
const wanted = process.argv.slice(2);

interface Shot {
  name: string;
  path: string;
  screen?: keyof typeof screens;
  color_scheme?: 'light' | 'dark';
  /** A selector that exists once the screen is complete. */
  ready(page: Page): Promise<unknown>;
}

await mkdir(images, { recursive: true });
const plane = await TestPlane.open({ env: WITH_NODES });
const browser = await openBrowser();
let node: TestAgentNode | null = null;
try {
  node = await TestAgentNode.open(plane, { id: 'gpu-1' });
  for (const shot of shots(await openScene(plane, node))) {
    if (wanted.length > 0 && !wanted.includes(shot.name)) continue;
    const { screen = 'desk', color_scheme = 'light' } = shot;
    const { page } = await browser.open(plane, { screen, color_scheme });
    await signIn(page, plane);
    await page.goto(plane.url + shot.path);
    await shot.ready(page);
    // Time for fonts and the first output of a stream.
    await sleep(1500);
    await page.screenshot({ path: join(images, `${shot.name}.png`) });
    await page.context().close();
    console.log(`docs/images/${shot.name}.png`);
  }
} finally {
  await browser.close();
  await node?.close();
  await plane.close();
}

function shots({ agents, team, run, review }: Scene): Shot[] {
  const title = (page: Page, name: string | RegExp) =>
    page.getByRole('heading', { level: 1, name }).first().waitFor();
  const option = (page: Page) =>
    page
      .getByRole('button', { name: /^(1 )?Allow/ })
      .first()
      .waitFor();
  const reviewed = `/agents/${agents['fix-checkout-race']}`;
  return [
    { name: 'agents', path: '/agents', ready: (page) => title(page, 'Agents') },
    { name: 'conversation', path: `${reviewed}/conversation`, color_scheme: 'dark', ready: option },
    { name: 'approvals', path: '/approvals', ready: option },
    { name: 'run', path: run, ready: (page) => title(page, /Run 1/) },
    { name: 'approval-phone', path: `/approvals?review=${review}`, screen: 'phone', ready: option },
    {
      name: 'output',
      path: `/agents/${agents['watch-build']}/output`,
      ready: (page) =>
        page
          .getByText(/build \d+ in/)
          .first()
          .waitFor(),
    },
    {
      name: 'changes',
      path: `/agents/${agents['api-docs']}/changes`,
      ready: (page) => title(page, /api-docs/),
    },
    { name: 'agents-phone', path: '/agents', screen: 'phone', ready: (page) => title(page, 'Agents') },
    { name: 'new-agent', path: '/agents/new', ready: (page) => title(page, 'New agent') },
    { name: 'team', path: `/teams/${team}`, ready: (page) => title(page, 'release-notes') },
    { name: 'tasks', path: '/tasks', ready: (page) => title(page, 'Tasks') },
    { name: 'nodes', path: '/nodes', ready: (page) => title(page, 'Nodes') },
    { name: 'audit', path: '/audit', ready: (page) => title(page, 'Audit') },
    { name: 'settings', path: '/settings/appearance', ready: (page) => title(page, /Settings|Appearance/) },
    { name: 'api-docs', path: '/docs', ready: (page) => title(page, 'API') },
  ];
}
