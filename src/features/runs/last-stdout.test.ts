import { expect, test } from 'vitest';
import type { EventRecord } from '../../core/event.ts';
import type { EventLog } from '../../events/log.ts';
import { OutputMissing } from '../../events/output.ts';
import { lastStdout } from './last-stdout.ts';

test('damaged output of a session is read without that of sessions before and after it', async () => {
  const events = [
    ['ses_1', 'stdout', 'before'],
    ['ses_2', 'stdout', 'one, '],
    ['ses_2', 'stderr', 'warning'],
    ['ses_2', 'stdout', 'two'],
    ['ses_3', 'stdout', 'after'],
  ].map(
    ([session_id, stream, data], at) => ({ session_id, stream, data, seq: at + 1 }) as unknown as EventRecord,
  );
  const log = {
    page: async () => ({ events, has_more: false }),
    output: () => Promise.reject(new OutputMissing('a block cannot be read')),
  };
  const { bytes, missing } = await lastStdout(log as unknown as EventLog, 'agt_1', 'ses_2');
  expect(Buffer.from(bytes).toString()).toBe('one, two');
  expect(missing).toBe('a block cannot be read');
});
