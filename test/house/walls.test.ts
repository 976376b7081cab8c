/**
 * The walls: a room imports only from floors below its own, never from a neighbour. When this fails, move the code to
 * the floor where both sides can reach it, or let the lower side write a fact that the higher one reads.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { importsOf, isForTests, root, type SourceFile, sourceFiles, targetOf } from './source.ts';

const floors: Record<string, number> = {
  base: 0,
  domain: 1,
  acp: 1,
  contract: 2,
  demo: 2,
  'agent-doctor': 2,
  store: 3,
  runtime: 3,
  link: 3,
  ingest: 4,
  events: 4,
  flow: 5,
  timers: 5,
  services: 6,
  http: 7,
  'rpc-actor': 7,
  'rpc-node': 7,
  cli: 7,
  main: 8,
};

/** Rooms with a list of their own instead of a floor. */
const guests: Record<string, string[]> = { web: ['contract', 'domain'] };

const files = sourceFiles('src');
const shipped = files.filter((file) => !isForTests(file.path));

function roomOf(path: string): string {
  return path.split('/')[1] ?? '';
}

/** What is wrong with one import, or null. */
function trespass(path: string, imported: string): string | null {
  const target = targetOf(path, imported);
  if (target === null) return null;
  if (!target.startsWith('src/')) return `${path} leaves src: ${imported}`;
  if (isForTests(target)) return `${path} imports what is for tests: ${imported}`;
  const from = roomOf(path);
  const to = roomOf(target);
  if (from === to) return null;
  const allowed = guests[from]?.includes(to) ?? floors[from]! > floors[to]!;
  return allowed ? null : `${path} (${from}) imports ${to}: ${imported}`;
}

function trespasses(found: SourceFile[]): string[] {
  return found.flatMap((file) =>
    file.imports.flatMap((imported) => {
      const problem = trespass(file.path, imported);
      return problem ? [problem] : [];
    }),
  );
}

test('every source file lies in a room of the house', () => {
  const known = [...Object.keys(floors), ...Object.keys(guests), 'testing'];
  expect(files.filter((file) => !known.includes(roomOf(file.path))).map((file) => file.path)).toEqual([]);
});

test('a room imports only from floors below its own', () => {
  expect(shipped.length).toBeGreaterThan(20);
  expect(trespasses(shipped)).toEqual([]);
});

test('relative imports name a file that exists, with its extension', () => {
  const broken = files.flatMap((file) =>
    file.imports.flatMap((imported) => {
      // What Vite adds to a name says how it takes the file.
      const target = targetOf(file.path, imported)?.replace(/\?\w+$/, '');
      const fine = target === undefined || (/\.\w+$/.test(target) && existsSync(join(root, target)));
      return fine ? [] : [`${file.path}: ${imported}`];
    }),
  );
  expect(broken).toEqual([]);
});

test('only store/ knows which database it is; two files of their own are SQLite too', () => {
  const own_files = ['src/main/lock.ts', 'src/events/search-index.ts'];
  const allowed = (path: string) => path.startsWith('src/store/') || own_files.includes(path);
  const found = shipped.filter((file) => file.imports.includes('node:sqlite') && !allowed(file.path));
  expect(found.map((file) => file.path)).toEqual([]);
});

test('domain/ does no I/O and reads no clock', () => {
  const found = shipped
    .filter((file) => roomOf(file.path) === 'domain')
    .filter(
      (file) =>
        file.imports.some((imported) => imported.startsWith('node:') && imported !== 'node:crypto') ||
        /\bDate\.now\(|new Date\(\)|\bprocess\./.test(file.text),
    );
  expect(found.map((file) => file.path)).toEqual([]);
});

test('only the rooms of the wire speak gRPC', () => {
  const rooms = ['link', 'rpc-actor', 'rpc-node', 'cli'];
  const wire = /^@(connectrpc|bufbuild)\/|\/gen\/\w+_pb\.ts$/;
  const found = shipped
    .filter((file) => !rooms.includes(roomOf(file.path)))
    .filter((file) => !file.path.startsWith('src/contract/gen/'))
    .filter((file) => file.imports.some((imported) => wire.test(imported)));
  expect(found.map((file) => file.path)).toEqual([]);
});

test('a node is made without database, log, services and HTTP', () => {
  const seen = new Set<string>();
  const visit = (path: string) => {
    if (seen.has(path)) return;
    seen.add(path);
    const file = shipped.find((one) => one.path === path);
    for (const imported of file?.imports ?? []) visit(targetOf(path, imported) ?? '');
  };
  visit('src/main/node.ts');
  const rooms = new Set([...seen].filter((path) => path.startsWith('src/')).map(roomOf));
  expect([...rooms].sort()).toEqual(expect.arrayContaining(['link', 'rpc-node', 'runtime']));
  const plane_alone = ['store', 'ingest', 'events', 'flow', 'timers', 'services', 'http', 'cli'];
  expect(plane_alone.filter((room) => rooms.has(room))).toEqual([]);
});

test('a wall is seen whichever way it is crossed', () => {
  const ways = [
    `import { x } from '../http/a.ts';`,
    `import type { x } from '../http/a.ts';`,
    `import '../http/a.ts';`,
    `export { x } from '../http/a.ts';`,
    `export * from '../http/a.ts';`,
    `export type { x } from '../http/a.ts';`,
    `const x = await import('../http/a.ts');`,
  ];
  for (const text of ways) {
    const crossed = importsOf('src/store/x.ts', text).map((imported) => trespass('src/store/x.ts', imported));
    expect(crossed, text).toEqual(['src/store/x.ts (store) imports http: ../http/a.ts']);
  }
  expect(trespass('src/store/x.ts', '../runtime/a.ts')).toContain('imports runtime');
  expect(trespass('src/store/x.ts', '../store/a.ts')).toBe(null);
  expect(trespass('src/store/x.ts', '../domain/a.ts')).toBe(null);
  expect(trespass('src/web/x.tsx', '../services/a.ts')).toContain('imports services');
  expect(trespass('src/web/x.tsx', '../contract/a.ts')).toBe(null);
  expect(trespass('src/http/x.ts', '../testing/a.ts')).toContain('for tests');
  expect(trespass('src/http/x.ts', '../../scripts/a.ts')).toContain('leaves src');
});
