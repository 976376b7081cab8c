import { describe, expect, test } from 'vitest';
import {
  agentMessage,
  errorEvent,
  numbered,
  permissionRequest,
  permissionResponse,
  promptRequest,
  promptResponse,
  statusEvent,
  toolCall,
  toolCallUpdate,
} from '../../../../acp/transcript/testing.ts';
import { Transcript } from '../../../../acp/transcript/transcript.ts';
import type { EventRecord } from '../../../../core/event.ts';
import { buildEntries, type Entry, entriesAt, type TimedEntry } from './entries.ts';
import { countRows, fitLabel, placeBars } from './layout.ts';
import { createScale, foldWidths, type Scale } from './scale.ts';
import { placeTicks } from './ticks.ts';
import { entryText, foldText, summarize, tickText } from './words.ts';

/** The view of a transcript whose events have these times. */
function viewAt(...timed: [number, Record<string, unknown>][]) {
  const transcript = new Transcript();
  const events = numbered(timed.map(([, fields]) => fields));
  transcript.append(events.map((event, at): EventRecord => ({ ...event, ts: timed[at]![0] })));
  return transcript.view;
}

const entry = (lane: Entry['lane'], from: number, to: number, label: string = lane): TimedEntry => ({
  key: `${lane} ${from}`,
  lane,
  label,
  turn: null,
  seq: from,
  from,
  to,
  is_open: false,
  result: null,
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
    const entries = buildEntries(view, true);
    const bars = entries.map(({ lane, from, to, seq }) => [lane, from, to, seq]);
    expect(bars).toContainEqual(['sessions', 10, 40, 1]);
    expect(bars).toContainEqual(['tools', 21, 25, 3]);
    expect(bars).toContainEqual(['warnings', 27, 27, 6]);
    expect(bars.filter(([lane]) => lane === 'turns')).toEqual([['turns', 20, 27, 2]]);
    expect(bars.find(([lane]) => lane === 'waits')?.slice(0, 2)).toEqual(['waits', 26]);
    const failed = entries.filter(({ result }) => result?.status === 'failed');
    expect(failed.map(({ lane }) => lane).sort()).toEqual(['sessions', 'tools', 'warnings']);
    const [session] = entriesAt(entries, 100);
    expect(entryText(session!)).toBe('Session 1 · failed, exit 3, 30 s');
    expect(entryText(entry('tools', 21, 21, 'Read a.ts'))).toBe('Read a.ts, < 0.1 s');
    expect(entryText(entry('warnings', 27, 27, 'Turn lost'))).toBe('Turn lost');
    expect(summarize(entries, 100)).toMatch(/^1 session · 1 turn · 1 tool call · waited /);
  });

  test('belong to their turn, and say who answered', () => {
    const view = viewAt(
      [10, promptRequest('Do it')],
      [11, permissionRequest('rev_1', { toolCallId: 'c1', title: 'npm publish' })],
      [31, permissionResponse('rev_1', { outcome: 'selected', optionId: 'y' })],
      [40, promptResponse('end_turn')],
    );
    const wait = buildEntries(view, false).find(({ lane }) => lane === 'waits');
    expect(wait).toMatchObject({
      ...{ label: 'Permission: npm publish', turn: 1, from: 11, to: 31 },
      result: { status: 'completed', text: 'Answered by ana: Yes, do it' },
    });
    const open = viewAt([11, permissionRequest('rev_2', { toolCallId: 'c2', title: 'npm publish' })]);
    expect(buildEntries(open, false).find(({ lane }) => lane === 'waits')?.result).toEqual({
      ...{ status: 'needs_you', text: 'Waiting for an answer' },
    });
  });

  test('extend to now while they are open, and to the last event once the agent has stopped', () => {
    const view = viewAt([10, promptRequest('Do it')], [11, agentMessage('I am')]);
    const turn = (entries: TimedEntry[]) => entries.find(({ lane }) => lane === 'turns');
    expect(turn(entriesAt(buildEntries(view, false), 50))).toMatchObject({ from: 10, to: 50, is_open: true });
    expect(turn(entriesAt(buildEntries(view, true), 50))).toMatchObject({ from: 10, to: 11, is_open: false });
  });
});

describe('the time scale', () => {
  test('folds times of more than half a minute without activity', () => {
    const scale = createScale(
      [entry('turns', 0, 1000), entry('tools', 0, 20), entry('tools', 980, 1000)],
      [],
      800 + foldWidths.full,
    );
    expect(scale.segments.map(({ from, to, fold }) => [from, to, fold])).toEqual([
      [0, 20, null],
      [20, 980, 'idle'],
      [980, 1000, null],
    ]);
    expect(scale.segments.map(({ width }) => width)).toEqual([400, foldWidths.full, 400]);
    expect([0, 10, 20, 500, 980, 1000].map(scale.at)).toEqual([0, 200, 400, 452, 504, 904]);
    expect([0, 200, 452, 904].map((x) => Math.round(scale.find(x)!.ts))).toEqual([0, 10, 500, 1000]);
    expect(scale.find(452)!.segment.fold).toBe('idle');
  });

  test('does not fold a long tool call, or a pause with messages in it', () => {
    expect(createScale([entry('tools', 0, 600)], [], 800).segments.map(({ fold }) => fold)).toEqual([null]);
    const words = [25, 50, 75];
    expect(createScale([entry('turns', 0, 100)], words, 800).segments.map(({ fold }) => fold)).toEqual([
      null,
    ]);
    expect(createScale([entry('turns', 0, 100)], [], 800).segments.map(({ fold }) => fold)).toEqual(['idle']);
  });

  test('folds the time in which a tool waits for a person', () => {
    const scale = createScale([entry('tools', 0, 640), entry('waits', 20, 620)], [], 840);
    expect(scale.segments.map(({ from, to, fold }) => [from, to, fold])).toEqual([
      [0, 20, null],
      [20, 620, 'waiting'],
      [620, 640, null],
    ]);
  });

  test('keeps the length of sessions if nothing else is known', () => {
    const scale = createScale([entry('sessions', 0, 600), entry('sessions', 6000, 6600)], [], 840);
    expect(scale.segments.map(({ fold }) => fold)).toEqual([null, 'idle', null]);
  });

  test('exists for a single instant, and without any bars', () => {
    expect(createScale([entry('warnings', 5, 5)], [], 500)).toMatchObject({ width: 500 });
    expect(createScale([], [], 500)).toMatchObject({ width: 0, segments: [] });
    expect(createScale([], [], 500).at(7)).toBe(0);
    expect(createScale([], [], 500).find(7)).toBeNull();
  });

  test('has narrower folds if there are many', () => {
    const folds = (count: number) => {
      const bars = Array.from({ length: count + 1 }, (_, at) => entry('tools', at * 100, at * 100 + 10));
      const found = createScale(bars, [], 1000).segments.filter(({ fold }) => fold);
      return [found.length, found[0]!.width, foldText(found[0]!)];
    };
    expect(folds(2)).toEqual([2, foldWidths.full, '⋯ 1m30s idle']);
    expect(folds(5)).toEqual([5, foldWidths.short, '⋯ 1m30s']);
    expect(folds(12)).toEqual([12, foldWidths.mark, '⋯']);
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

const measure = (text: string) => text.length * 6;

describe('the ticks', () => {
  const ticks = (scale: Scale) => placeTicks(scale, { format: (ts) => `at ${ts}`, measure, offset_s: 0 });

  test('are round times', () => {
    const scale = createScale([entry('tools', 3, 63)], [], 600);
    expect(ticks(scale).map(({ ts, x }) => [ts, Math.round(x)])).toEqual([
      [10, 70],
      [20, 170],
      [30, 270],
      [40, 370],
      [50, 470],
    ]);
  });

  test('never collide with each other or with a folded time', () => {
    for (const width of [320, 500, 900, 1600]) {
      const bars = Array.from({ length: 7 }, (_, at) => entry('tools', at * 137, at * 137 + 7 * at + 1));
      const scale = createScale(bars, [], width);
      const taken = [
        ...ticks(scale).map(({ x, text }) => ({ x, end: x + measure(text) })),
        ...scale.segments.filter(({ fold }) => fold).map(({ x, width }) => ({ x, end: x + width })),
      ].sort((a, b) => a.x - b.x);
      for (const [at, { end }] of taken.entries())
        expect(end).toBeLessThanOrEqual(taken[at + 1]?.x ?? scale.width);
    }
  });

  test('are round in local time, and as exact as they are close', () => {
    const scale = createScale([entry('tools', 0, 7200)], [], 600);
    const [first] = placeTicks(scale, { format: tickText, measure, offset_s: 600 });
    expect((first!.ts + 600) % 1800).toBe(0);
    expect(tickText(0.5, 0.5)).toMatch(/00.5/);
    expect(tickText(5, 5)).toMatch(/:00:05/);
    expect(tickText(60, 60)).not.toMatch(/:01:00/);
  });

  test('show the beginning of a time without a round one', () => {
    const scale = createScale([entry('tools', 61.2, 61.25)], [], 300);
    expect(ticks(scale).map(({ ts }) => ts)).toEqual([61.2]);
  });
});

describe('the bars of a lane', () => {
  const place = (bars: TimedEntry[], width = 1000) => placeBars(bars, createScale(bars, [], width), measure);

  test('have their label inside, else beside, and never overlap', () => {
    const bars = place([
      entry('tools', 0, 60, 'Long enough'),
      entry('tools', 61, 62, 'Read src/cart.ts'),
      entry('tools', 62, 63, 'Edit src/cart.ts'),
      entry('tools', 88, 89, 'At the end'),
    ]);
    expect(bars.map(({ label }) => label?.side)).toEqual(['inside', 'after', 'after', 'before']);
    expect(bars.map(({ row }) => row)).toEqual([0, 0, 1, 0]);
    expect(bars[1]!.label!.text).toBe('Read src/cart.ts');
  });

  test('that overlap are in separate rows', () => {
    const bars = place([
      entry('tools', 0, 50, 'a'),
      entry('tools', 10, 60, 'b'),
      entry('tools', 55, 100, 'c'),
    ]);
    expect(bars.map(({ row }) => row)).toEqual([0, 1, 0]);
  });

  test('stay compact if there are hundreds', () => {
    const calls = Array.from({ length: 400 }, (_, at) => entry('tools', at, at + 0.1, 'Read a file'));
    const bars = place(calls);
    expect(countRows(bars)).toBeLessThan(12);
    for (const bar of bars)
      for (const other of bars)
        if (bar !== other && bar.row === other.row)
          expect(bar.x + bar.width <= other.x || other.x + other.width <= bar.x).toBe(true);
  });
});

test('a label is cut between words or after a slash, never within a word', () => {
  expect(fitLabel('npm test', 48, measure)).toBe('npm test');
  expect(fitLabel('npm test', 40, measure)).toBe('npm…');
  expect(fitLabel('Read src/web/main.tsx', 90, measure)).toBe('Read src/web/…');
  expect(fitLabel('indivisible', 30, measure)).toBeNull();
});
