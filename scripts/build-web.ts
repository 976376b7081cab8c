/**
 * `npm run build:web`: builds the web UI into dist/web, with compressed copies of large files. `--if-needed`: only if
 * something changed. A service that serves the folder meanwhile sees a complete UI at all times.
 */
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { buildOnce, filesOf, if_needed } from './build-once.ts';
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
  'scripts/build-once.ts',
  'scripts/first-screens.ts',
  'scripts/web-manifest.ts',
];
const COMPRESSED = /^assets\/.*\.(css|js|json|map|svg|txt)$|^pages\/.*\.html$/;
const COMPRESSED_BYTES_MIN = 1024;

async function build({ build: viteBuild }: typeof import('vite'), folder: string): Promise<void> {
  // Tests and development use the production build too.
  process.env.NODE_ENV = 'production';
  await viteBuild({
    configFile: join(root, 'vite.config.ts'),
    logLevel: 'warn',
    build: { outDir: folder, emptyOutDir: true },
  });
  await writePages(folder, viteBuild);
  await compress(folder);
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
async function publish(fresh: string, web: string): Promise<void> {
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
}

await buildOnce({
  name: 'web',
  inputs: INPUTS,
  not_inputs: /\.test\.tsx?$/,
  done: 'built the web UI',
  importTools: () =>
    import('vite').catch((error: NodeJS.ErrnoException) => {
      if (!if_needed || error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
      console.log('the web UI is not built: its tools are not installed (npm ci, without --omit=dev)');
      process.exit(0);
    }),
  build,
  publish,
});
