/**
 * In a fresh clone, `npm ci` rejects a lock file that lacks a package of another platform. npm writes such a file, without a
 * warning, if the registry does not have that package yet. If this test fails, pin the parent to a release whose platform
 * packages have all been published.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './source.ts';

interface Locked {
  version?: string;
  integrity?: string;
  link?: boolean;
  /** It is part of its parent's tarball, and covered by the parent's hash. */
  inBundle?: boolean;
  hasInstallScript?: boolean;
  license?: string;
  dev?: boolean;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
  packages: Record<string, Locked>;
};
const packages = Object.entries(lock.packages);

test('the lock file contains every package that one of its packages depends on', () => {
  const missing = packages.flatMap(([path, { dependencies, optionalDependencies }]) =>
    Object.keys({ ...dependencies, ...optionalDependencies })
      .filter((name) => !found(path, name))
      .map((name) => `${path || 'the project'} depends on ${name}`),
  );
  expect(missing).toEqual([]);
});

/** Searches like Node: next to the package, then in the folders above. */
function found(path: string, name: string): boolean {
  for (let folder = path; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    if (`${folder ? `${folder}/` : ''}node_modules/${name}` in lock.packages) return true;
    if (folder === '') return false;
  }
}

test('every locked package has a hash, and no run-time dependency has an install script', () => {
  const external = packages.filter(([path, each]) => path !== '' && !each.link && !each.inBundle);
  expect(external.length).toBeGreaterThan(50);
  expect(
    external.filter(([, { integrity }]) => !integrity?.startsWith('sha512-')).map(([path]) => path),
  ).toEqual([]);
  expect(external.filter(([, each]) => each.hasInstallScript && !each.dev).map(([path]) => path)).toEqual([]);
});

test('the generator of the protocol code has the version of the library that the code uses', () => {
  const text = readFileSync(join(root, 'scripts/protocols/package.json'), 'utf8');
  const { dependencies } = JSON.parse(text) as Required<Locked>;
  const { version } = lock.packages['node_modules/@bufbuild/protobuf'] ?? {};
  expect(dependencies['@bufbuild/protoc-gen-es']).toBe(version);
});
