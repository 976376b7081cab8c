import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { mergeCommand } from './take.ts';

test('the merge command names the repository and the branch, whatever their names', () => {
  expect(mergeCommand('/code/shop', 'svc/fix-agt_1')).toBe('git -C /code/shop merge svc/fix-agt_1');
  for (const name of ['my shop', "it's", '$(touch x)', 'a;b', '`id`', 'a\nb', '*', '"']) {
    const words = mergeCommand(name, name).replace(/^git /, "printf '%s\\0' ");
    const printed = execFileSync('/bin/sh', ['-c', words], { encoding: 'utf8' });
    expect(printed.split('\0').slice(0, -1)).toEqual(['-C', name, 'merge', name]);
  }
});
