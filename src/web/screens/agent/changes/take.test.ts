import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { mergeCommand, shellWord } from './take.ts';

describe('the merge command', () => {
  it('names the repository and the branch', () => {
    expect(mergeCommand('/code/shop', 'svc/fix-agt_1')).toBe('git -C /code/shop merge svc/fix-agt_1');
  });
  it('passes each name to the shell unchanged', () => {
    for (const name of ['my shop', "it's", '$(touch x)', 'a;b', '', '`id`', 'a\nb', '*', '"']) {
      const printed = execFileSync('/bin/sh', ['-c', `printf %s ${shellWord(name)}`], { encoding: 'utf8' });
      expect(printed).toBe(name);
    }
  });
});
