import { expect, test } from 'vitest';
import { agentRecord, time } from '../../../testing/agent-record.ts';
import type { Agent } from '../rules.ts';
import { formatStatus } from './agent-get.ts';

test.each<[Partial<Agent>, string]>([
  [{ status: 'created' }, 'created'],
  [{ status: 'running', activity: 'idle' }, 'running (idle)'],
  [{ status: 'running', activity: 'needs_you', needs_you: 'permission' }, 'running (needs_you)'],
  [{ status: 'failed', exit_code: 2 }, 'failed (2)'],
  [{ status: 'failed', exit_code: 2, restart_at: time }, 'failed (2, will restart)'],
  [{ status: 'failed', exit_code: 2, restart_at: undefined as never }, 'failed (2)'],
  [{ status: 'failed', exit_signal: 'SIGKILL' }, 'failed (SIGKILL)'],
  [{ status: 'failed', reason: 'spawn_failed' }, 'failed (spawn_failed)'],
  [{ status: 'completed' }, 'completed'],
  [{ status: 'cancelled' }, 'cancelled'],
  [{ status: 'cancelled', stopped_by_run: 'completed' }, 'run completed'],
  [{ status: 'cancelled', stopped_by_run: 'failed' }, 'run failed'],
])('an agent with %j is listed as %s', (fields, status) => {
  expect(formatStatus(agentRecord(fields))).toBe(status);
});
