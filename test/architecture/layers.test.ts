/** The import rules of `src/`. Each message says what to do instead. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  isKnownModule,
  known_violations,
  locate,
  outlives,
  pure_parts,
  removable,
  removalViolation,
  violation,
  violations,
  violationsOf,
} from './layers.ts';
import { isForTests, loadedBy, root, type SourceFile, sourceFiles, targetOf } from './source.ts';

const SQL = /\b(selectFrom|insertInto|replaceInto|updateTable|deleteFrom)\(|\bsql(<\w+>)?`/;
const files = sourceFiles('src');
const shipped = files.filter((file) => !isForTests(file.path));

test('every source file is in a module or feature that the rules know', () => {
  const unknown = files.filter((file) => !isKnownModule(file.path)).map((file) => file.path);
  expect(
    unknown,
    'add the module to layers, or the feature to features, in test/architecture/layers.ts',
  ).toEqual([]);
});

test('modules and features import only from below', () => {
  expect(shipped.length).toBeGreaterThan(20);
  const found = violations(shipped).filter((text) => !known_violations.includes(text.split(': ')[0]!));
  expect(found).toEqual([]);
});

test('only lists of features refer to features that can be removed', () => {
  const imports = shipped.flatMap((file) =>
    file.imports.flatMap((imported) => removalViolation(file.path, imported) ?? []),
  );
  expect(imports).toEqual([]);

  const calls = Object.keys(removable).flatMap((feature) => {
    const contract = files.find(({ path }) => path === `src/features/${feature}/contract.ts`);
    const operations = [...contract!.text.matchAll(/^ {2}(\w+): route\(/gm)].map(([, id]) => id!);
    expect(operations.length, `operations of ${feature}`).toBeGreaterThan(0);
    const call = new RegExp(`\\b(call|all|patiently|Answered|ItemOf)[(<]'(${operations.join('|')})'`);
    return shipped
      .filter(({ path, text }) => outlives(path, feature) && call.test(text))
      .map(({ path }) => `${path} calls ${feature}`);
  });
  expect(calls, 'move the code into the feature').toEqual([]);
});

test('every known violation still exists', () => {
  const found = violations(shipped).map((text) => text.split(': ')[0]);
  const obsolete = known_violations.filter((text) => !found.includes(text));
  expect(obsolete, 'remove these from known_violations').toEqual([]);
});

test('relative imports name a file that exists, with its extension', () => {
  const broken = files.flatMap((file) =>
    file.imports.flatMap((imported) => {
      // A suffix such as ?url tells Vite how to load the file.
      const target = targetOf(file.path, imported)?.replace(/\?\w+$/, '');
      const fine = target === undefined || (/\.\w+$/.test(target) && existsSync(join(root, target)));
      return fine ? [] : [`${file.path}: ${imported}`];
    }),
  );
  expect(broken).toEqual([]);
});

test('only the store, the lock and the search index open SQLite', () => {
  const others = ['src/main/lock.ts', 'src/events/search-index.ts'];
  const allowed = (path: string) => path.startsWith('src/store/') || others.includes(path);
  const found = shipped.filter((file) => file.imports.includes('node:sqlite') && !allowed(file.path));
  expect(
    found.map((file) => file.path),
    'use the Store from src/store/store.ts',
  ).toEqual([]);
});

test('SQL is written only in the store, the event log and queries', () => {
  const allowed = (path: string) => /^src\/(store|events)\//.test(path) || /\/queries(\.ts$|\/)/.test(path);
  const found = shipped.filter((file) => SQL.test(file.text) && !allowed(file.path));
  expect(
    found.map((file) => file.path),
    'move the statement to the queries of the module or feature',
  ).toEqual([]);
});

test('one module writes rows of events, heads and spools', () => {
  const write =
    /(insertInto|updateTable|deleteFrom)\(\s*'(events|heads|spools)'|(INTO|UPDATE|FROM) (events|heads|spools) (\(|SET|WHERE)/;
  const allowed = (path: string) => /^src\/store\/(event-rows|migrations)\//.test(path);
  const found = shipped.filter((file) => write.test(file.text) && !allowed(file.path));
  expect(
    found.map((file) => file.path),
    'use src/store/event-rows',
  ).toEqual([]);
});

test('contracts, rules, core and acp do no I/O and read no clock', () => {
  const isPure = (path: string) => {
    const { module, part } = locate(path);
    return ['core', 'acp', 'api'].includes(module) || (module === 'features' && pure_parts.includes(part));
  };
  const found = shipped
    .filter((file) => isPure(file.path))
    .filter(
      (file) =>
        file.imports.some((imported) => /^node:(?!crypto$|path$|net$|util$)/.test(imported)) ||
        /\bDate\.now\(|new Date\(\)|\bprocess\.(env|argv|cwd|exit|pid|platform|getuid|hrtime)\b/.test(
          file.text,
        ),
    );
  expect(
    found.map((file) => file.path),
    'pass time and I/O in from the service',
  ).toEqual([]);
});

test('only the link, the listener for actors and their commands speak gRPC', () => {
  const allowed = (path: string) =>
    /^src\/(link|server\/actors|features\/actors\/commands|testing)\//.test(path);
  const wire = /^@(connectrpc|bufbuild)\/|\/\w+_pb\.ts$/;
  const found = shipped.filter((file) => !allowed(file.path) && file.imports.some((one) => wire.test(one)));
  expect(found.map((file) => file.path)).toEqual([]);
});

test('a node contains no database, event log, feature or HTTP server', () => {
  const seen = reachable(shipped, 'src/main/node.ts');
  const modules = new Set([...seen].map((path) => locate(path).module));
  expect([...modules].sort()).toEqual(expect.arrayContaining(['link', 'node']));
  expect(['store', 'events', 'work', 'cli'].filter((module) => modules.has(module))).toEqual([]);
  const parts = [...seen].filter((path) => {
    const { module, part } = locate(path);
    return module === 'features' && !pure_parts.includes(part);
  });
  expect(parts).toEqual([]);
  expect(
    [...seen].filter((path) => path.startsWith('src/server/') && !path.startsWith('src/server/actors/')),
  ).toEqual([]);
});

test('svc starts without the agent doctor, and the doctor without its scripted model', () => {
  const doctor = [...loadedWith('src/tools/agent-doctor/doctor.ts')];
  expect(doctor).toContain('src/tools/agent-doctor/examination.ts');
  expect(doctor.filter((path) => path.startsWith('src/tools/agent-doctor/model/'))).toEqual([]);
  const agents = 'src/features/agents/commands/agents.ts';
  const cli = ['src/main/svc.ts', 'src/cli/main.ts', agents].flatMap((path) => [...loadedWith(path)]);
  expect(cli).toContain('src/cli/agent-doctor.ts');
  expect(cli.filter((path) => path.startsWith('src/tools/agent-doctor/'))).toEqual([]);
});

test('an import against the rules is found however it is written', () => {
  const forms = [
    `import { x } from '../server/a.ts';`,
    `import type { x } from '../server/a.ts';`,
    `import '../server/a.ts';`,
    `export { x } from '../server/a.ts';`,
    `export * from '../server/a.ts';`,
    `export type { x } from '../server/a.ts';`,
    `const x = await import('../server/a.ts');`,
  ];
  for (const text of forms) expect(violationsOf('src/store/x.ts', text), text).toHaveLength(1);
  expect(violation('src/store/x.ts', '../node/a.ts')).toContain('not below store');
  expect(violation('src/store/x.ts', '../store/a.ts')).toBe(null);
  expect(violation('src/store/x.ts', '../core/a.ts')).toBe(null);
  expect(violation('src/web/x.tsx', '../features/agents/service.ts')).toContain('contracts and rules only');
  expect(violation('src/web/x.tsx', '../features/agents/contract.ts')).toBe(null);
  expect(violation('src/node/x.ts', '../features/presets/rules/catalog.ts')).toBe(null);
  expect(violation('src/features/audit/x.ts', '../agents/service.ts')).toContain('record a fact');
  expect(violation('src/features/agents/x.ts', '../audit/service.ts')).toBe(null);
  expect(violation('src/features/runs/x.ts', '../agents/http.ts')).toContain('private');
  expect(violation('src/features/runs/commands/x.ts', '../service.ts')).toBe(null);
  expect(violation('src/features/runs/commands/x.ts', '../../agents/service.ts')).toContain('HTTP client');
  expect(violation('src/server/x.ts', '../testing/a.ts')).toContain('test code');
  expect(violation('src/server/x.ts', '../../scripts/a.ts')).toContain('outside');
});

test('an import of a removable feature is found, on the server and in the web UI', () => {
  for (const [feature, users] of Object.entries(removable)) {
    const server = `../${feature}/commands/a.ts`;
    expect(removalViolation('src/features/runs/x.ts', server)).toContain('extension or hook');
    expect(removalViolation('src/web/screens/run/x.tsx', `../${feature}/a.tsx`)).toContain(
      'src/web/feature.ts',
    );
    expect(removalViolation('src/main/plane.ts', `../features/${feature}/index.ts`)).toBe(null);
    expect(
      removalViolation(`src/web/screens/${feature}/x.tsx`, `../../../features/${feature}/rules/a.ts`),
    ).toBe(null);
    for (const user of users) expect(removalViolation(`src/features/${user}/x.ts`, server)).toBe(null);
  }
});

/** All files that are loaded together with one file. */
function loadedWith(from: string): Set<string> {
  return reachable(shipped, from, (file) => loadedBy(file.path, file.text));
}

/** All files that one file needs. */
function reachable(
  all: readonly SourceFile[],
  from: string,
  importsOf = ({ imports }: SourceFile) => imports,
): Set<string> {
  const by_path = new Map(all.map((file) => [file.path, file]));
  const seen = new Set<string>();
  const visit = (path: string) => {
    const file = by_path.get(path);
    if (!file || seen.has(path)) return;
    seen.add(path);
    for (const imported of importsOf(file)) visit(targetOf(path, imported) ?? '');
  };
  visit(from);
  return seen;
}
