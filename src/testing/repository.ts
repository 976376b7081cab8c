/** Real git repositories in temporary folders, for tests. `remove` deletes everything. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export interface TemporaryFolder {
  path: string;
  remove(): void;
}

export function temporaryFolder(): TemporaryFolder {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'svc-test-')));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Runs git in a folder, without the configuration of this machine. */
export function git(folder: string, ...args: string[]): string {
  return execFileSync('git', ['-C', folder, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      HOME: '/nonexistent',
      LC_ALL: 'C',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_AUTHOR_NAME: 'Test',
      GIT_AUTHOR_EMAIL: 'test@example.com',
      GIT_COMMITTER_NAME: 'Test',
      GIT_COMMITTER_EMAIL: 'test@example.com',
    },
  }).replace(/\n$/, '');
}

/** Creates a repository with these files in one commit on `main`; without files, it has no commit. */
export function makeRepository(path: string, files: Record<string, string> = {}): string {
  mkdirSync(path, { recursive: true });
  git(path, 'init', '--quiet', '--initial-branch=main');
  if (Object.keys(files).length > 0) commit(path, files, 'first');
  return path;
}

/** Writes files and commits them; returns the commit. */
export function commit(path: string, files: Record<string, string>, message: string): string {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), text);
  }
  git(path, 'add', '--all');
  git(path, 'commit', '--quiet', '--message', message);
  return git(path, 'rev-parse', 'HEAD');
}

/** Creates a program that appends a line to the file `canary` whenever it runs. */
export function makeTrap(folder: string, canary: string): string {
  const path = join(folder, 'trap');
  writeFileSync(path, `#!/bin/sh\necho "$0 $*" >> '${canary}'\ncat\n`);
  chmodSync(path, 0o755);
  return path;
}

/** Configures a program as every hook, filter, driver and transport that git could run in a repository. A commit runs it. */
export function poison(repo: string, program: string): void {
  for (const hook of ['post-checkout', 'reference-transaction', 'post-index-change', 'pre-commit']) {
    symlinkSync(program, join(repo, '.git/hooks', hook));
  }
  commit(repo, { '.gitattributes': '* filter=evil diff=evil\n', 'b.txt': 'two\n' }, 'attributes');
  const settings: [key: string, value: string][] = [
    ['core.fsmonitor', program],
    ['core.sshCommand', program],
    ['core.pager', program],
    ['core.editor', program],
    ['filter.evil.smudge', program],
    ['filter.evil.clean', program],
    ['filter.evil.process', program],
    ['filter.evil.required', 'true'],
    ['diff.external', program],
    ['diff.evil.command', program],
    ['diff.evil.textconv', program],
    ['protocol.ext.allow', 'always'],
    ['remote.origin.url', `ext::${program}`],
    ['remote.origin.promisor', 'true'],
    ['remote.origin.partialclonefilter', 'blob:none'],
    ['extensions.partialClone', 'origin'],
  ];
  for (const [key, value] of settings) git(repo, 'config', key, value);
}
