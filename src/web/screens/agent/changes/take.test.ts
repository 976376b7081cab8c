import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { mergeCommand, patchText, pushCommand } from './take.ts';

test('the merge command names the repository and the branch, whatever their names', () => {
  expect(mergeCommand('/code/shop', 'svc/fix-agt_1')).toBe('git -C /code/shop merge svc/fix-agt_1');
  expect(mergeCommand('/code/shop', '--no-commit')).toBe('git -C /code/shop merge -- --no-commit');
  for (const name of ['my shop', "it's", '$(touch x)', 'a;b', '`id`', 'a\nb', '*', '"']) {
    const words = mergeCommand(name, name).replace(/^git /, "printf '%s\\0' ");
    const printed = execFileSync('/bin/sh', ['-c', words], { encoding: 'utf8' });
    expect(printed.split('\0').slice(0, -1)).toEqual(['-C', name, 'merge', name]);
  }
});

test('the push command names the branch in full, so that git takes it for nothing else', () => {
  const command = pushCommand('/code/shop', 'origin', 'svc/fix-agt_1');
  expect(command).toBe('git -C /code/shop push -u origin refs/heads/svc/fix-agt_1');
  for (const name of ['--mirror', '+main', "it's", '$(touch_x)', 'a;b', '`id`', '"', 'größe']) {
    const words = pushCommand(name, 'origin', name)!.replace(/^git /, "printf '%s\\0' ");
    const printed = execFileSync('/bin/sh', ['-c', words], { encoding: 'utf8' });
    const refspec = `refs/heads/${name}`;
    expect(printed.split('\0').slice(0, -1)).toEqual(['-C', name, 'push', '-u', 'origin', refspec]);
  }
  for (const name of [':main', 'a:main', '*', 'a\nb', 'a b'])
    expect(pushCommand('/code', 'origin', name)).toBeNull();
});

test('a patch is copied only if its text has the same bytes', async () => {
  const latin1 = Uint8Array.of(0x2b, 0x67, 0x72, 0xfc, 0x6e, 0x0a);
  expect(await patchText(new Blob([latin1]))).toBeNull();
  const marked = '\ufeff+grün 😀\r\n';
  expect(await patchText(new Blob([marked]))).toBe(marked);
});
