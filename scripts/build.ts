/**
 * `npm run build`: src/ as JavaScript in dist/, without tests, beside everything in src/ that is no TypeScript; the web
 * UI as `build-web.ts` makes it. Then it looks at what a package would hold, and starts the built program once.
 */
import { cp, glob, mkdir, readdir, rm } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { root, run } from './run.ts';

const dist = join(root, 'dist');
await mkdir(dist, { recursive: true });
for (const name of await readdir(dist)) {
  // A service from the sources may be serving the web UI meanwhile.
  if (!/^\.?web/.test(name)) await rm(join(dist, name), { recursive: true });
}
await need('compiling', ['tsc', '--project', 'tsconfig.build.json']);
await need('building the web UI', ['node', 'scripts/build-web.ts', '--if-needed']);

for await (const file of glob('src/**/*.*', { cwd: root })) {
  if (/\.tsx?$/.test(file) || file.startsWith('src/web/')) continue;
  const target = join(dist, relative('src', file));
  await mkdir(dirname(target), { recursive: true });
  await cp(join(root, file), target);
}

const listing = await need('listing the package', ['npm', 'pack', '--dry-run', '--json', '--ignore-scripts']);
const [{ files }] = JSON.parse(listing) as [{ files: { path: string }[] }];
const packed = new Set(files.map((file) => file.path));
const needed = ['bin/svc', 'dist/main/svc.js', 'dist/web/index.html', 'openapi.json', 'LICENSE'];
const missing = needed.filter((path) => !packed.has(path));
const strange = [...packed].filter((path) =>
  /\.tsx?$|\.test\.|^dist\/testing\/|-child\.js$|^src\/|^dist\/(web\/)?\./.test(path),
);
if (missing.length + strange.length > 0) fail('the package', `missing: ${missing}; strange: ${strange}`);

await need('starting dist/main/svc.js', ['node', 'dist/main/svc.js', '--version']);
console.log(`built dist/; a package would hold ${packed.size} files`);

async function need(what: string, argv: [string, ...string[]]): Promise<string> {
  const { ok, output } = await run(argv);
  if (!ok) fail(what, output);
  return output;
}

function fail(what: string, output: string): never {
  console.error(`${what} failed:\n${output.trimEnd()}`);
  process.exit(1);
}
