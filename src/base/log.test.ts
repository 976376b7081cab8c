import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openLog } from './log.ts';

test('escapes control characters in text lines', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-log-'));
  const output = join(folder, 'svc.log');
  const { log } = openLog({ level: 'info', format: 'text', output });
  log.info({ name: 'a\x1b[2J\x9b2J\x9d0;x\x9c\x7f\r\nb' }, 'reported\x1b[2J\x9b2J\nas a line');
  const text = await readFile(output, 'utf8');
  await rm(folder, { recursive: true });
  expect(text).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/);
  expect(text.split('\n')).toHaveLength(2);
  expect(text).toContain('reported\\u001b[2J\\u009b2J\\u000aas a line name="a\\u001b[2J\\u009b2J');
});
