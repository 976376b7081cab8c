/** Building the web UI into the folder that it is served from: only when needed, atomically, by one process at a time. */
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { root, run } from '../scripts/run.ts';
import { sleep } from '../src/base/async.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-web-build-'));
  const files = [
    'scripts/build-once.ts',
    'scripts/build-web.ts',
    'scripts/first-screens.ts',
    'scripts/run.ts',
    'scripts/web-manifest.ts',
    'package.json',
    'package-lock.json',
    'tsconfig.json',
  ];
  for (const name of [...files, 'vite.config.ts']) await cp(join(root, name), join(folder, name));
  await mkdir(join(folder, 'src/web'), { recursive: true });
  const script = '<script type="module" src="./main.ts"></script>';
  await write('index.html', `<!doctype html>\n<html>\n  <head>\n    ${script}\n  </head>\n</html>`);
  await write('main.ts', page('first'));
});
afterEach(() => rm(folder, { recursive: true }));

const write = (name: string, text: string) => writeFile(join(folder, 'src/web', name), text);
const page = (text: string) => `document.title = ${JSON.stringify(text.repeat(400))};`;
const link = () => symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
const build = (...args: string[]) => run(['node', join(folder, 'scripts/build-web.ts'), ...args], folder);
const served = (name: string) => readFile(join(folder, 'dist/web', name), 'utf8').catch(() => null);

/** The script that the page refers to now; null without a page. */
async function scriptOf(): Promise<string | null> {
  const html = await served('index.html');
  return html === null ? null : /src="\/(assets\/[^"]+)"/.exec(html)![1]!;
}

test('the web UI is built only if it is missing or a source has changed', async () => {
  await link();
  const first = await build('--if-needed');
  expect([first.ok, first.output]).toEqual([true, expect.stringMatching(/^built the web UI in [\d.]+ s\n$/)]);
  const script = await scriptOf();
  expect(await served(script!)).toContain('first');
  expect(await readdir(join(folder, 'dist/web/assets'))).toEqual(
    ['', '.br', '.gz'].map((end) => script!.replace('assets/', '') + end),
  );
  expect((await build('--if-needed')).output).toBe('');

  await write('main.ts', page('second'));
  await write('main.test.ts', 'what tests say is no part of it');
  expect((await build('--if-needed')).output).toContain('built');
  expect(await served((await scriptOf())!)).toContain('second');
  expect(await served(script!)).toBe(null);

  await write('main.test.ts', 'something else');
  expect((await build('--if-needed')).output).toBe('');
  await rm(join(folder, 'dist/web'), { recursive: true });
  expect((await build('--if-needed')).output).toContain('built');
  expect(await readdir(join(folder, 'dist'))).toEqual(['.web.lock', 'web']);
});

test('each place has its own HTML page that preloads the scripts and requests of its screen', async () => {
  await link();
  await write('main.ts', `import('./far.ts'); ${page('first')}`);
  await write('far.ts', page('far'));
  await write('pages.json', '{"home":["index.html"],"far.away":["index.html"]}');
  await mkdir(join(folder, 'src/web/screens/far'), { recursive: true });
  await write('screens/far/pages.json', '{"far.away":["far.ts","/api/far"]}');
  await build();
  const preloaded = (html: string | null) => [
    ...html!.matchAll(/modulepreload" crossorigin href="\/([^"]+)"/g),
  ];
  const far = preloaded(await served('pages/far.away.html')).at(-1)![1]!;
  expect(await served(far)).toContain('far');
  expect(await served('pages/home.html')).toBe(await served('index.html'));
  expect(await served('index.html')).not.toContain(far);
  const request = '<link rel="preload" as="fetch" crossorigin href="/api/far">';
  expect(await served('pages/far.away.html')).toContain(request);
  expect(await served('pages/home.html')).not.toContain(request);

  await write('pages.json', '{"far":["nowhere.ts"]}');
  const { ok, output } = await build();
  expect([ok, output]).toEqual([false, expect.stringContaining('nowhere.ts is not a chunk of the web UI')]);
  expect(await served('pages/far.away.html')).toContain(far);
});

test('each place has the first screen that the UI renders without data, except pages with embedded data', async () => {
  await link();
  await write('pages.json', '{"far.away":["index.html"],"api.docs":["index.html"]}');
  await write(
    'index.html',
    '<!doctype html>\n<html>\n  <head>\n    <script type="module" src="./main.ts"></script>\n  </head>\n  <body>\n  </body>\n</html>',
  );
  await mkdir(join(folder, 'src/web/prerender'));
  await write(
    'prerender/prerender.tsx',
    'export const prerender = async (page: string) => "<p>" + page + "</p>";',
  );
  expect((await build()).output).toContain('built');
  const html = await served('pages/far.away.html');
  expect(html).toContain('<p>far.away</p>\n  </body>');
  expect(html).toContain('<html data-page="far.away">');
  expect(await served('pages/api.docs.html')).not.toContain('<p>');
  expect(await readdir(join(folder, 'dist/web'))).not.toContain('prerender');
});

test('the scripts of the page are available at any time, even during concurrent builds', async () => {
  await link();
  await build();
  const before = await scriptOf();
  await write('main.ts', page('second'));
  let over = false;
  const builds = Promise.all([build('--if-needed'), build('--if-needed'), build()]).finally(() => {
    over = true;
  });
  const missing: string[] = [];
  for (; !over; await sleep(1)) {
    const script = await scriptOf();
    const there = script !== null && (await served(script)) !== null;
    // Ignores a page that was replaced between the two reads.
    if (!there && (await scriptOf()) === script) missing.push(String(script));
  }
  const outcomes = await builds;
  expect(outcomes.map(({ ok }) => ok)).toEqual([true, true, true]);
  expect(missing).toEqual([]);
  expect(await scriptOf()).not.toBe(before);
  expect((await build('--if-needed')).output).toBe('');
});

test('a failed build reports the reason and keeps the previous one', async () => {
  await link();
  await build();
  const script = await scriptOf();
  await write('main.ts', 'import "./nowhere.ts";');
  const { ok, output } = await build('--if-needed');
  expect([ok, output]).toEqual([false, expect.stringContaining('nowhere.ts')]);
  expect([await scriptOf(), await served(script!)]).toEqual([script, expect.stringContaining('first')]);
  expect(await readdir(join(folder, 'dist'))).toEqual(['.web.lock', 'web']);
});

test('--if-needed succeeds without the build tools, and reports why there is no web UI', async () => {
  const { ok, output } = await build('--if-needed');
  expect([ok, output]).toEqual([true, expect.stringContaining('the web UI is not built: its tools are not')]);
  expect((await build()).ok).toBe(false);
});
