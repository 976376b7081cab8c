/** Real git repositories in temporary folders, for tests. `remove` deletes everything. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
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
      // Otherwise, each commit starts another git, which finds nothing to do.
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'maintenance.auto',
      GIT_CONFIG_VALUE_0: 'false',
    },
  }).replace(/\n$/, '');
}

/** The files in `.git` of each repository that `makeRepository` made, by the repository's own files. */
const made = new Map<string, readonly GitFile[]>();

interface GitFile {
  /** Relative to `.git`. */
  path: string;
  /** Null: a folder. */
  content: Buffer | null;
  mode: number;
}

/**
 * Creates a repository with these files in one commit on `main`; without files, it has no commit. Git makes the first one, and
 * the others are copies, because the processes of git need far more processor time than a copy.
 */
export function makeRepository(path: string, files: Record<string, string> = {}): string {
  const is_new = !existsSync(path) || readdirSync(path).length === 0;
  mkdirSync(path, { recursive: true });
  const has_commit = Object.keys(files).length > 0;
  const key = JSON.stringify(files);
  const copied = is_new ? made.get(key) : undefined;
  if (copied) {
    writeFiles(path, files);
    writeGitFiles(join(path, '.git'), copied);
    // The index also has the inodes and the times of the files.
    if (has_commit) git(path, 'update-index', '--refresh');
    return path;
  }
  git(path, 'init', '--quiet', '--initial-branch=main');
  if (has_commit) commit(path, files, 'first');
  if (is_new) made.set(key, readGitFiles(join(path, '.git')));
  return path;
}

/** Folders precede what is in them. */
function readGitFiles(folder: string): GitFile[] {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted();
  return paths.map((path) => {
    const absolute = join(folder, path);
    const stat = statSync(absolute);
    return { path, content: stat.isDirectory() ? null : readFileSync(absolute), mode: stat.mode & 0o777 };
  });
}

function writeGitFiles(folder: string, files: readonly GitFile[]): void {
  mkdirSync(folder);
  for (const { path, content, mode } of files) {
    if (content === null) mkdirSync(join(folder, path), { mode });
    else writeFileSync(join(folder, path), content, { mode });
  }
}

/** Writes files and commits them. */
export function commit(path: string, files: Record<string, string>, message: string): void {
  writeFiles(path, files);
  git(path, 'add', '--all');
  git(path, 'commit', '--quiet', '--message', message);
}

function writeFiles(path: string, files: Record<string, string>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), text);
  }
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
