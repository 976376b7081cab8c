/**
 * `npm run screenshots`: takes pictures of the main screens of the web UI for `docs/images/`, from a temporary
 * service with agents, a team and a run. Needs Chromium.
 */
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { sleep } from '../src/base/async.ts';
import { WITH_NODES } from '../src/testing/agent-node.ts';
import { openBrowser, type screens, signIn } from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { makeRepository } from '../src/testing/repository.ts';
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
try {
  for (const shot of await scene()) {
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
  await plane.close();
}

/** Creates what the pictures show, and returns its ids. */
async function scene(): Promise<Shot[]> {
  const { client } = plane;
  const shop = makeRepository(join(plane.work, 'shop'), {
    'README.md': '# Shop\n\nSells things.\n',
    'src/cart.ts': 'export const total = (prices: number[]) => prices.reduce((a, b) => a + b, 0);\n',
  });
  const common = { worktree_mode: 'create_worktree', worktree_repo: shop, start: true } as const;
  const agent = (name: string, body: { command?: string; preset?: string; prompt?: string }) =>
    client.call('createAgent', { body: { name, ...common, ...body } });
  await agent('lint', { command: 'echo checked 214 files; echo no problems' });
  await agent('migrate', { command: 'echo migrating table orders; echo "out of memory" >&2; exit 137' });
  const build = await agent('watch-build', {
    command:
      'n=0; while :; do n=$((n+1)); printf "\\033[32mok\\033[0m build %d in %d ms\\n" $n $((n * 7 % 90 + 40)); sleep 0.2; done',
  });
  await agent('api-docs', { preset: 'demo', prompt: '/sleep 600' });
  const reviewed = await agent('fix-checkout', { preset: 'demo', prompt: 'Fix the flaky checkout test' });

  const example = JSON.parse(await readFile(join(root, 'examples/human.json'), 'utf8'));
  const team = await client.call('createTeam', { body: example });
  const run = await client.call('createRun', {
    params: { team_id: team.id },
    body: { input: { title: 'A poem about rain' } },
  });
  const waiting = async () =>
    (await client.call('listReviews', { query: { status: 'pending', limit: 10 } })) as {
      items: { agent_id: string }[];
    };
  while ((await waiting()).items.length < 2) await sleep(100);

  const title = (page: Page, name: string | RegExp) =>
    page.getByRole('heading', { level: 1, name }).first().waitFor();
  const run_path = `/teams/${team.id}/runs/${run.id}`;
  return [
    { name: 'agents', path: '/agents', ready: (page) => title(page, 'Agents') },
    {
      name: 'conversation',
      path: `/agents/${reviewed.id}/conversation`,
      color_scheme: 'dark',
      ready: (page) =>
        page
          .getByRole('button', { name: /^(1 )?Allow/ })
          .first()
          .waitFor(),
    },
    { name: 'run', path: run_path, ready: (page) => title(page, /Run 1/) },
    {
      name: 'approval-phone',
      path: '/approvals',
      screen: 'phone',
      ready: (page) =>
        page
          .getByRole('button', { name: /^(1 )?Allow/ })
          .first()
          .waitFor(),
    },
    {
      name: 'output',
      path: `/agents/${build.id}/output`,
      ready: (page) =>
        page
          .getByText(/build \d+ in/)
          .first()
          .waitFor(),
    },
    { name: 'changes', path: `/agents/${reviewed.id}/changes`, ready: (page) => title(page, /fix-checkout/) },
    { name: 'agents-phone', path: '/agents', screen: 'phone', ready: (page) => title(page, 'Agents') },
    { name: 'new-agent', path: '/agents/new', ready: (page) => title(page, 'New agent') },
    { name: 'team', path: `/teams/${team.id}`, ready: (page) => title(page, 'human') },
    { name: 'tasks', path: '/tasks', ready: (page) => title(page, 'Tasks') },
    { name: 'nodes', path: '/nodes', ready: (page) => title(page, 'Nodes') },
    { name: 'audit', path: '/audit', ready: (page) => title(page, 'Audit') },
    { name: 'settings', path: '/settings/appearance', ready: (page) => title(page, /Settings|Appearance/) },
    { name: 'api-docs', path: '/docs', ready: (page) => title(page, 'API') },
  ];
}
