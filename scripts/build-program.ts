/**
 * `npm run build:program`: bundles the program into dist/program, with all its libraries and their licenses. Loading a few files
 * takes half the time that loading a thousand takes. `--if-needed`: only if something changed. A service that runs from the
 * folder meanwhile can still load its files: those of earlier builds stay for a week.
 */
import { readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { join } from 'node:path';
import type { Plugin } from 'rolldown';
import { bundledName } from '../src/base/program-files.ts';
import { buildOnce } from './build-once.ts';
import { root } from './run.ts';

/** What runs in a process or thread of its own: `svc`, and what `entryPoint` names. */
const ENTRY_POINTS = [
  'main/svc',
  'events/worker',
  'node/folders/worker',
  'node/processes/launcher',
  'store/worker',
];
const KEEP_MS = 7 * 24 * 60 * 60 * 1000;
const PLAIN_HTTP = '\0plain-http';

async function bundle({ rolldown }: typeof import('rolldown'), folder: string): Promise<void> {
  const bundle = await rolldown({
    input: Object.fromEntries(ENTRY_POINTS.map((path) => [bundledName(path), join(root, `src/${path}.ts`)])),
    cwd: root,
    platform: 'node',
    plugins: [plainHttp],
    logLevel: 'warn',
  });
  const { output } = await bundle.write({
    dir: folder,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
    // V8 keeps the sources in memory, with two bytes per character if one of them is not Latin-1.
    comments: false,
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: false, asciiOnly: true } },
  });
  await bundle.close();
  const modules = output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
  await writeFile(join(folder, 'LICENSES.txt'), await licenses(modules));
}

/**
 * Replaces imports of `node:http`. Such an import reads every export of the module, and with one of them Node loads all of
 * `fetch` and WebSocket, which the service does not use: 30 ms of each start. The replacement has no such exports.
 */
const plainHttp: Plugin = {
  name: 'plain-http',
  resolveId: (id, _importer, { kind }) =>
    kind !== 'require-call' && (id === 'node:http' || id === 'http') ? PLAIN_HTTP : null,
  load: (id) => {
    if (id !== PLAIN_HTTP) return null;
    const names = Object.entries(Object.getOwnPropertyDescriptors(http)).flatMap(([name, { get }]) =>
      get === undefined ? [name] : [],
    );
    return [
      `const http = process.getBuiltinModule('node:http');`,
      'export default http;',
      ...names.map((name) => `export const ${name} = http.${name};`),
    ].join('\n');
  },
};

/** The licenses of the packages that these modules belong to. */
async function licenses(modules: readonly string[]): Promise<string> {
  const folders = new Set(
    modules.flatMap((path) => /^.*[\\/]node_modules[\\/](@[^\\/]+[\\/])?[^\\/]+/.exec(path)?.[0] ?? []),
  );
  const texts = await Promise.all(
    [...folders].sort().map(async (folder) => {
      const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
      const file = (await readdir(folder)).find((one) => /^licen[cs]e/i.test(one));
      const text = file === undefined ? '' : `\n\n${(await readFile(join(folder, file), 'utf8')).trim()}`;
      return `${name} ${version} (${license})${text}\n`;
    }),
  );
  return texts.join(`\n${'-'.repeat(80)}\n\n`);
}

/** Shared files have new names if their content is new, so they are in place before the entry points that name them. */
async function publish(fresh: string, program: string): Promise<void> {
  const names = await readdir(fresh);
  const entries = ENTRY_POINTS.map((path) => `${bundledName(path)}.js`);
  const order = [...names.filter((name) => !entries.includes(name)), ...entries];
  for (const name of order) await rename(join(fresh, name), join(program, name));
  for (const name of await readdir(program)) {
    const path = join(program, name);
    if (!names.includes(name) && Date.now() - (await stat(path)).mtimeMs > KEEP_MS) await rm(path);
  }
}

await buildOnce({
  name: 'program',
  inputs: ['src/**/*.ts', 'package-lock.json', 'scripts/build-program.ts', 'scripts/build-once.ts'],
  not_inputs: /\.test\.ts$|^src\/(testing|web)\//,
  done: 'bundled the program',
  importTools: () =>
    import('rolldown').catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
      console.error(
        'the program cannot be bundled: its tools are not installed (npm ci, without --omit=dev)',
      );
      process.exit(1);
    }),
  build: bundle,
  publish,
});
