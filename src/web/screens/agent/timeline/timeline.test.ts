import { describe, expect, test } from 'vitest';
import {
  agentMessage,
  errorEvent,
  numbered,
  permissionRequest,
  promptRequest,
  promptResponse,
  statusEvent,
  toolCall,
  toolCallUpdate,
} from '../../../../acp/transcript/testing.ts';
import { Transcript } from '../../../../acp/transcript/transcript.ts';
import type { EventRecord } from '../../../../core/event.ts';
import { buildEntries, type Entry } from './entries.ts';
import { assignRows, createScale } from './scale.ts';

/** The view of a transcript whose events have these times. */
function viewAt(...timed: [number, Record<string, unknown>][]) {
  const transcript = new Transcript();
  const events = numbered(timed.map(([, fields]) => fields));
  transcript.append(events.map((event, at): EventRecord => ({ ...event, ts: timed[at]![0] })));
  return transcript.view;
}

const entry = (lane: Entry['lane'], from: number, to: number): Entry => ({
  key: `${lane} ${from}`,
  lane,
  label: lane,
  seq: from,
  from,
  to,
  open: false,
  failed: false,
});

describe('the bars of a timeline', () => {
  test('show sessions, turns, tools, waits and warnings, each with its first event', () => {
    const view = viewAt(
      [10, { type: 'status', status: 'running', previous_status: 'created' }],
      [20, promptRequest('Do it')],
      [21, toolCall('c1', { status: 'in_progress' })],
      [25, toolCallUpdate('c1', { status: 'failed' })],
      [26, permissionRequest('rev_1', { toolCallId: 'c2', title: 'Write' })],
      [27, errorEvent('turn_lost')],
      [30, promptResponse('end_turn')],
      [40, statusEvent('failed', { exit_code: 3 })],
    );
    const bars = buildEntries(view, 100).map(({ lane, from, to, seq }) => [lane, from, to, seq]);
    expect(bars).toContainEqual(['sessions', 10, 40, 1]);
    expect(bars).toContainEqual(['tools', 21, 25, 3]);
    expect(bars).toContainEqual(['warnings', 27, 27, 6]);
    expect(bars.filter(([lane]) => lane === 'turns')).toEqual([['turns', 20, 27, 2]]);
    expect(bars.find(([lane]) => lane === 'waits')?.slice(0, 2)).toEqual(['waits', 26]);
    const failed = buildEntries(view, 100).filter((each) => each.failed);
    expect(failed.map(({ lane }) => lane).sort()).toEqual(['sessions', 'tools', 'warnings']);
    expect(buildEntries(view, 100)[0]?.label).toBe('Session 1 · failed, exit 3');
  });

  test('extend to now while they are open', () => {
    const view = viewAt([10, promptRequest('Do it')], [11, agentMessage('I am')]);
    const turn = buildEntries(view, 50).find(({ lane }) => lane === 'turns');
    expect(turn).toMatchObject({ from: 10, to: 50, open: true });
  });
});

describe('the time scale', () => {
  test('folds times of more than half a minute without activity', () => {
    const scale = createScale(
      [entry('turns', 0, 1000), entry('tools', 0, 20), entry('tools', 980, 1000)],
      [],
      840,
    );
    expect(scale.segments.map(({ from, to, folded }) => [from, to, folded])).toEqual([
      [0, 20, false],
      [20, 980, true],
      [980, 1000, false],
    ]);
    expect(scale.segments.map(({ width }) => width)).toEqual([400, 40, 400]);
    expect([0, 10, 20, 500, 980, 1000].map(scale.at)).toEqual([0, 200, 400, 420, 440, 840]);
  });

  test('does not fold a long tool call, or a pause with messages in it', () => {
    expect(createScale([entry('tools', 0, 600)], [], 800).segments.map(({ folded }) => folded)).toEqual([
      false,
    ]);
    const words = [25, 50, 75];
    expect(createScale([entry('turns', 0, 100)], words, 800).segments.map(({ folded }) => folded)).toEqual([
      false,
    ]);
    expect(createScale([entry('turns', 0, 100)], [], 800).segments.map(({ folded }) => folded)).toEqual([
      true,
    ]);
  });

  test('folds the time in which a tool waits for a person', () => {
    const scale = createScale([entry('tools', 0, 640), entry('waits', 20, 620)], [], 840);
    expect(scale.segments.map(({ from, to, folded }) => [from, to, folded])).toEqual([
      [0, 20, false],
      [20, 620, true],
      [620, 640, false],
    ]);
  });

  test('keeps the length of sessions if nothing else is known', () => {
    const scale = createScale([entry('sessions', 0, 600), entry('sessions', 6000, 6600)], [], 840);
    expect(scale.segments.map(({ folded }) => folded)).toEqual([false, true, false]);
  });

  test('exists for a single instant, and without any bars', () => {
    expect(createScale([entry('warnings', 5, 5)], [], 500)).toMatchObject({ width: 500 });
    expect(createScale([], [], 500)).toMatchObject({ width: 0, segments: [] });
    expect(createScale([], [], 500).at(7)).toBe(0);
  });

  test('never goes backwards', () => {
    const bars = [
      entry('tools', 0, 1),
      entry('waits', 50, 400),
      entry('tools', 400, 401),
      entry('turns', 0, 500),
    ];
    const scale = createScale(bars, [], 300);
    const xs = Array.from({ length: 501 }, (_, ts) => scale.at(ts));
    expect(xs.every((x, at) => at === 0 || x >= xs[at - 1]!)).toBe(true);
  });
});

test('overlapping bars are in separate rows', () => {
  const bars = [
    { x: 0, width: 10 },
    { x: 5, width: 10 },
    { x: 10, width: 5 },
    { x: 12, width: 5 },
  ];
  expect(assignRows(bars)).toEqual([0, 1, 0, 2]);
});
