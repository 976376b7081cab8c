/**
 * `npm run build`: bundles the program and the client, declares the client's types, and builds the web UI. Then it checks what a
 * package would contain, and starts the built program once.
 */
import { glob, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { root, run } from './run.ts';

const dist = join(root, 'dist');
await mkdir(dist, { recursive: true });
for (const name of await readdir(dist)) {
  // A service may be running from these meanwhile.
  if (!/^\.?(web|program)/.test(name)) await rm(join(dist, name), { recursive: true });
}
await need('bundling the program', ['node', 'scripts/build-program.ts', '--if-needed']);
const client = await rolldown({ input: join(root, 'src/client/index.ts'), cwd: root, platform: 'neutral' });
await client.write({ dir: join(dist, 'client'), format: 'esm', entryFileNames: '[name].js' });
await client.close();
await need('declaring the types of the client', ['tsc', '--project', 'tsconfig.client.json']);
for await (const file of glob('dist/**/*.d.ts', { cwd: root })) {
  // tsc keeps the extensions of the sources here, and the package has none of these.
  const text = await readFile(join(root, file), 'utf8');
  await writeFile(
    join(root, file),
    text.replaceAll(/((?:from|import\()\s*['"]\.[^'"]*)\.ts(['"])/g, '$1.js$2'),
  );
}
await need('building the web UI', ['node', 'scripts/build-web.ts', '--if-needed']);

const listing = await need('listing the package', ['npm', 'pack', '--dry-run', '--json', '--ignore-scripts']);
const [{ files }] = JSON.parse(listing) as [{ files: { path: string }[] }];
const packed = new Set(files.map((file) => file.path));
const needed = [
  'bin/svc',
  'dist/program/main-svc.js',
  'dist/program/LICENSES.txt',
  'dist/client/index.js',
  'dist/client/index.d.ts',
  'dist/web/index.html',
  'openapi.json',
  'LICENSE',
];
const missing = needed.filter((path) => !packed.has(path));
const strange = [...packed].filter((path) =>
  /(?<!\.d)\.tsx?$|\.test\.|^dist\/testing\/|-child\.js$|^src\/|^dist\/((web|program)\/)?\./.test(path),
);
if (missing.length + strange.length > 0) fail('the package', `missing: ${missing}; strange: ${strange}`);

await need('starting the bundle', ['node', 'dist/program/main-svc.js', '--version']);
console.log(`built dist/; a package would contain ${packed.size} files`);

async function need(what: string, argv: [string, ...string[]]): Promise<string> {
  const { ok, output } = await run(argv);
  if (!ok) fail(what, output);
  return output;
}

function fail(what: string, output: string): never {
  console.error(`${what} failed:\n${output.trimEnd()}`);
  process.exit(1);
}
