/**
 * `npm ci` in a fresh clone refuses a lock file that lacks a package of another platform, and npm writes such a file
 * without a word when a registry does not have that package yet. When this fails, pin the parent at a release whose
 * platform packages are all there.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './source.ts';

interface Locked {
  version?: string;
  integrity?: string;
  link?: boolean;
  /** Comes inside its parent's tarball, under that one's hash. */
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

test('the lock file holds every package that it names', () => {
  const missing = packages.flatMap(([path, { dependencies, optionalDependencies }]) =>
    Object.keys({ ...dependencies, ...optionalDependencies })
      .filter((name) => !found(path, name))
      .map((name) => `${path || 'the project'} needs ${name}`),
  );
  expect(missing).toEqual([]);
});

/** As Node looks: beside the package, then further up. */
function found(path: string, name: string): boolean {
  for (let folder = path; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    if (`${folder ? `${folder}/` : ''}node_modules/${name}` in lock.packages) return true;
    if (folder === '') return false;
  }
}

test('every locked package has a hash, and no run-time dependency runs a script when installed', () => {
  const external = packages.filter(([path, each]) => path !== '' && !each.link && !each.inBundle);
  expect(external.length).toBeGreaterThan(50);
  expect(
    external.filter(([, { integrity }]) => !integrity?.startsWith('sha512-')).map(([path]) => path),
  ).toEqual([]);
  expect(external.filter(([, each]) => each.hasInstallScript && !each.dev).map(([path]) => path)).toEqual([]);
});
