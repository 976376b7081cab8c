import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { hasProc, readStat } from '../../base/proc.ts';
import { START_TIME } from './shell-scripts.ts';

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
