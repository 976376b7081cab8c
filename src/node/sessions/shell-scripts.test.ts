import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { hasProc, readStat } from '../../base/proc.ts';
import { GUARD, START_TIME } from './shell-scripts.ts';

const shells = ['/bin/sh', '/bin/bash'].filter((path) => existsSync(path));

test.runIf(hasProc).each(shells)('%s reads the start time of a process whose name has line ends', (shell) => {
  const title = process.title;
  process.title = 'a\n) S 1 2\n';
  try {
    const script = `${START_TIME}\nst ${process.pid}; echo "$t"`;
    const answer = execFileSync(shell, ['-c', script], { encoding: 'utf8' });
    expect(answer).toBe(`${readStat(process.pid)!.start}\n`);
  } finally {
    process.title = title;
  }
});

test.runIf(hasProc).each([
  { free_kib: 399, sleeps: ['near', 'near', 'near', 'near'] },
  { free_kib: 400, sleeps: ['far', 'far', 'far', 'far'] },
  { free_kib: 3_099, sleeps: ['far', 'far', 'far', 'far'] },
  { free_kib: 3_100, sleeps: ['ample'] },
])(
  'the guard checks a disk with $free_kib KiB free again after $sleeps.0, and ends without sessions',
  ({ free_kib, sleeps }) => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-guard-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const tool = (name: string, script: string) => {
      writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o700 });
      return join(folder, name);
    };
    const df = tool('df', `echo header; echo /dev/disk 9999 9999 ${free_kib} 1% /`);
    const sleep = tool('sleep', 'echo "$1" >>slept');
    const intervals = ['near', 'far', 'ample'];
    const argv = ['-c', GUARD, 'svc-guard', df, sleep, 'rm', 'mv', 'ps', '100', '200', '3100', ...intervals];
    execFileSync('/bin/sh', argv, { cwd: folder });
    expect(readFileSync(join(folder, 'slept'), 'utf8').trim().split('\n')).toEqual(sleeps);
    expect(existsSync(join(folder, '.guard'))).toBe(false);
  },
);
