/**
 * `npm run build:web`: builds the web UI into dist/web, with compressed copies of large files. `--if-needed`: only if
 * something changed. A service that serves the folder meanwhile sees a complete UI at all times. If several builds
 * run at once, one works and the others wait.
 */
import { createHash } from 'node:crypto';
import { glob, mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { firstScreens } from './first-screens.ts';
import { root } from './run.ts';
import { manifestOf, scriptsOf } from './web-manifest.ts';

const INPUTS = [
  'src/web/**/*',
  'src/{acp,api,base,client,core}/**/*.ts',
  'src/features/**/{contract,rules}.ts',
  'src/features/**/{contract,rules}/*.ts',
  'tsconfig.json',
  'vite.config.ts',
  'package-lock.json',
  'scripts/build-web.ts',
  'scripts/first-screens.ts',
  'scripts/web-manifest.ts',
];
const COMPRESSED = /^assets\/.*\.(css|js|json|map|svg|txt)$|^pages\/.*\.html$/;
const COMPRESSED_BYTES_MIN = 1024;
const WAIT_MS = 300_000;

const dist = join(root, 'dist');
const web = join(dist, 'web');
/** A hash of the sources of dist/web; absent while files are being replaced. */
const STAMP = '.stamp';

async function main(if_needed: boolean): Promise<void> {
  const needed = async () => !if_needed || !(await fits());
  if (!(await needed())) return;
  const vite = await import('vite').catch((error: NodeJS.ErrnoException) => {
    if (if_needed && error.code === 'ERR_MODULE_NOT_FOUND') return null;
    throw error;
  });
  if (vite === null) {
    console.log('the web UI is not built: its tools are not installed (npm ci, without --omit=dev)');
    return;
  }
  await mkdir(dist, { recursive: true });
  const lock = waitForTurn();
  try {
    if (await needed()) await build(vite.build);
  } finally {
    lock.close();
  }
}

async function build(viteBuild: typeof import('vite').build): Promise<void> {
  const started = performance.now();
  const stamp = await inputs();
  const fresh = await mkdtemp(join(dist, '.web-'));
  try {
    // Tests and development use the production build too.
    process.env.NODE_ENV = 'production';
    await viteBuild({
      configFile: join(root, 'vite.config.ts'),
      logLevel: 'warn',
      build: { outDir: fresh, emptyOutDir: true },
    });
    await writePages(fresh, viteBuild);
    await compress(fresh);
    await publish(fresh, stamp);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  console.log(`built the web UI in ${((performance.now() - started) / 1000).toFixed(1)} s`);
}

async function fits(): Promise<boolean> {
  const made_from = await readFile(join(web, STAMP), 'utf8').catch(() => null);
  return made_from !== null && made_from === (await inputs());
}

async function inputs(): Promise<string> {
  const hash = createHash('sha256');
  const paths = (await filesOf(root, INPUTS)).filter((path) => !/\.test\.tsx?$/.test(path));
  for (const path of paths) {
    const content = await readFile(join(root, path));
    hash.update(`${path}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}

/** The kernel releases this lock however the process ends. */
function waitForTurn(): DatabaseSync {
  const lock = new DatabaseSync(join(dist, '.web.lock'), { timeout: WAIT_MS });
  lock.exec('BEGIN EXCLUSIVE');
  return lock;
}

/**
 * Writes a copy of the page for each frequently opened path, which names the scripts of its screen and its requests without a
 * token, so that the browser sends all of them at once instead of one after another. It contains the first screen.
 */
async function writePages(folder: string, viteBuild: typeof import('vite').build): Promise<void> {
  const page = await readFile(join(folder, 'index.html'), 'utf8');
  const manifest = manifestOf(folder);
  await mkdir(join(folder, 'pages'));
  const pages = await sourcesOfPages();
  const screens = await firstScreens(viteBuild, join(folder, 'prerender'), pages.keys());
  for (const [name, sources] of pages) {
    const [requests, scripts] = [sources.filter(isRequest), sources.filter((source) => !isRequest(source))];
    const links = [
      ...requests.map((path) => `<link rel="preload" as="fetch" crossorigin href="${path}">`),
      ...scriptsOf(manifest, scripts)
        .filter((file) => !page.includes(`"/${file}"`))
        .map((file) => `<link rel="modulepreload" crossorigin href="/${file}">`),
    ];
    const screen = screens.get(name);
    const text = page
      .replace('  </head>', () => `${links.map((link) => `    ${link}\n`).join('')}  </head>`)
      .replace('<html', () => (screen === undefined ? '<html' : `<html data-page="${name}"`))
      .replace('  </body>', () => (screen === undefined ? '  </body>' : `    ${screen}\n  </body>`));
    await writeFile(join(folder, 'pages', `${name}.html`), text);
  }
}

/** A request of the screen that needs no token, among its sources. */
const isRequest = (source: string) => source.startsWith('/api/');

/** The sources of each page, from `pages.json` and from those of the features. */
async function sourcesOfPages(): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>();
  const folder = join(root, 'src/web');
  for (const file of await filesOf(folder, ['pages.json', 'screens/*/pages.json'])) {
    const pages: Record<string, string[]> = JSON.parse(await readFile(join(folder, file), 'utf8'));
    for (const [name, sources] of Object.entries(pages)) {
      found.set(name, [...(found.get(name) ?? []), ...sources]);
    }
  }
  return found;
}

async function compress(folder: string): Promise<void> {
  const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
  for (const name of await filesOf(folder, ['**/*'])) {
    if (!COMPRESSED.test(name)) continue;
    const content = await readFile(join(folder, name));
    if (content.length < COMPRESSED_BYTES_MIN) continue;
    await writeFile(join(folder, `${name}.br`), await promisify(brotliCompress)(content, { params }));
    await writeFile(join(folder, `${name}.gz`), await promisify(gzip)(content, { level: 9 }));
  }
}

/** New scripts are in place before the pages that name them, and old ones are removed after them. */
async function publish(fresh: string, stamp: string): Promise<void> {
  await rm(join(web, STAMP), { force: true });
  const names = await filesOf(fresh, ['**/*', '.vite/*']);
  const is_page = (name: string) => /\.html(\.br|\.gz)?$/.test(name);
  const order = [...names.filter((name) => !is_page(name)), ...names.filter(is_page)];
  for (const name of order) {
    await mkdir(dirname(join(web, name)), { recursive: true });
    await rename(join(fresh, name), join(web, name));
  }
  for (const name of await filesOf(web, ['**/*'])) {
    if (!names.includes(name)) await rm(join(web, name));
  }
  await writeFile(join(web, STAMP), stamp);
}

/** Sorted paths of files, relative to the folder. */
async function filesOf(folder: string, patterns: string[]): Promise<string[]> {
  const found: string[] = [];
  for await (const name of glob(patterns, { cwd: folder })) {
    if ((await stat(join(folder, name))).isFile()) found.push(name);
  }
  return found.sort();
}

await main(process.argv.includes('--if-needed'));
