/**
 * `npm run build`: src/ as JavaScript in dist/, without tests, beside everything in src/ that is no TypeScript. Then it
 * looks at what a package would hold, and starts the built program once.
 */
import { cp, glob, mkdir, rm } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { root, run } from './run.ts';

const dist = join(root, 'dist');
await rm(dist, { recursive: true, force: true });
await need('compiling', ['tsc', '--project', 'tsconfig.build.json']);

for await (const file of glob('src/**/*.*', { cwd: root })) {
  if (/\.tsx?$/.test(file)) continue;
  const target = join(dist, relative('src', file));
  await mkdir(dirname(target), { recursive: true });
  await cp(join(root, file), target);
}

const listing = await need('listing the package', ['npm', 'pack', '--dry-run', '--json', '--ignore-scripts']);
const [{ files }] = JSON.parse(listing) as [{ files: { path: string }[] }];
const packed = new Set(files.map((file) => file.path));
const missing = ['bin/svc', 'dist/main/svc.js', 'openapi.json', 'LICENSE'].filter(
  (path) => !packed.has(path),
);
const strange = [...packed].filter((path) =>
  /\.tsx?$|\.test\.|^dist\/testing\/|-child\.js$|^src\//.test(path),
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
