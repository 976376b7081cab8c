import { expect, test } from 'vitest';
import { toolSpans, waitSpans } from './spans.ts';
import {
  permissionRequest,
  permissionResponse,
  promptRequest,
  toolCall,
  toolCallUpdate,
  viewOf,
} from './testing.ts';

test('a tool call lasts until its end, a permission request until its answer', () => {
  const { items } = viewOf(
    promptRequest('go'),
    toolCall('c1', { title: 'npm test' }),
    permissionRequest('rev_1'),
    permissionResponse('rev_1', { outcome: 'selected', optionId: 'y' }),
    toolCallUpdate('c1', { status: 'completed' }),
    permissionRequest('rev_2'),
  );
  expect(toolSpans(items)).toEqual([
    { key: '2', seq: 2, turn: 1, label: 'npm test', started_ts: 2, ended_ts: 5 },
  ]);
  expect(waitSpans(items).map(({ started_ts, ended_ts }) => [started_ts, ended_ts])).toEqual([
    [3, 4],
    [6, null],
  ]);
});
