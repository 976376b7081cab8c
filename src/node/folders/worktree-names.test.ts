import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { branchName, folderName, isServiceBranch } from './worktree-names.ts';

test('a folder name is one plain segment that ends with the agent id', () => {
  expect(folderName('Fix the  crash!', 'agt_x')).toBe('Fix-the-crash-agt_x');
  expect(folderName('../../etc', 'agt_x')).toBe('etc-agt_x');
  expect(folderName('Zoë 🙂', 'agt_x')).toBe('Zoe-agt_x');
  expect(folderName('-rf', 'agt_x')).toBe('rf-agt_x');
  expect(folderName('\0', 'agt_x')).toBe('agent-agt_x');
  expect(folderName('x'.repeat(5_000), 'agt_x')).toBe(`${'x'.repeat(40)}-agt_x`);
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (name) => {
      const folder = folderName(name, 'agt_x');
      expect(folder).toMatch(/^[A-Za-z0-9][A-Za-z0-9._-]*-agt_x$/);
      expect(folder).not.toContain('..');
      expect(isServiceBranch(branchName(folder))).toBe(true);
    }),
  );
});

test('git accepts every branch name', () => {
  for (const name of ['a.lock', 'a..b', '.hidden', 'x@{1}', 'a~^:?*[b\\', 'HEAD', '@', 'a/b', '']) {
    execFileSync('git', ['check-ref-format', '--branch', branchName(folderName(name, 'agt_x'))]);
  }
});

test('rejects an agent id that could leave its folder', () => {
  for (const id of ['', '../x', 'a/b', 'a\0', '-x', 'a.lock'])
    expect(() => folderName('a', id)).toThrow('agent_id');
});

test('a name that git could read as several commits or as an option is not a service branch', () => {
  expect(isServiceBranch('svc/a.b-agt_x')).toBe(true);
  for (const name of [
    'a',
    'svc/',
    'svc/-D',
    'svc/a..b',
    'svc/a...',
    'svc/a^',
    'svc/a@{u}',
    'svc/a\n',
    'svc/a b',
  ]) {
    expect(isServiceBranch(name), name).toBe(false);
  }
});
