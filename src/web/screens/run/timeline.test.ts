import { expect, test } from 'vitest';
import { assignRows, buildSpans, createScale, type Span } from './timeline.ts';

const MINUTE = 60_000;
const span = (from: number, to: number, lane = 'a'): Span => ({
  lane,
  key: `${lane}${from}`,
  kind: 'step',
  status: 'completed',
  from_ms: from * MINUTE,
  to_ms: to * MINUTE,
});

test('the scale is linear if something is always running', () => {
  const { x, folds } = createScale([span(0, 10), span(5, 20, 'b')], 0, 20 * MINUTE);
  expect(folds).toEqual([]);
  expect(x(0)).toBe(0);
  expect(x(5 * MINUTE)).toBeCloseTo(0.25);
  expect(x(20 * MINUTE)).toBeCloseTo(1);
});

test('a long idle time is folded, and later times keep their length', () => {
  const { x, folds, ticks } = createScale([span(0, 10), span(610, 620)], 0, 620 * MINUTE);
  expect(folds).toHaveLength(1);
  expect(folds[0]).toMatchObject({ from_ms: 10 * MINUTE, to_ms: 610 * MINUTE });
  expect(x(610 * MINUTE) - x(10 * MINUTE)).toBeLessThan(0.05);
  expect(x(10 * MINUTE) - x(0)).toBeCloseTo(x(620 * MINUTE) - x(610 * MINUTE));
  expect(ticks.map(({ ms }) => ms)).toEqual([0, 610 * MINUTE]);
});

test('positions never go backwards, and stay on the page', () => {
  const { x } = createScale([span(1, 2), span(90, 95), span(3, 4, 'b')], 0, 300 * MINUTE);
  let before = 0;
  for (let minute = -5; minute <= 310; minute++) {
    const at = x(minute * MINUTE);
    expect(at).toBeGreaterThanOrEqual(before);
    expect(at).toBeLessThanOrEqual(1);
    before = at;
  }
});

test('a run that has just started has a scale', () => {
  const { x } = createScale([], 1000, 1000);
  expect(x(1000)).toBe(0);
});

test('running steps extend to now, steps that have not started are omitted, and reviews are in the lane of their member', () => {
  const at = (ms: number) => new Date(ms).toISOString();
  const step = { member_id: 'api', status: 'running', ended_at: null };
  expect(
    buildSpans(
      [
        { ...step, step_key: 'one', started_at: at(1000) },
        { ...step, step_key: 'two', status: 'pending', started_at: null },
      ],
      [
        {
          id: 'rev_1',
          origin_actor_id: 'api@team_1',
          created_at: at(2000),
          answered_at: null,
          status: 'pending',
        },
        {
          id: 'rev_2',
          origin_actor_id: 'api@team_1',
          created_at: at(2000),
          answered_at: null,
          status: 'expired',
        },
      ],
      5000,
    ),
  ).toEqual([
    { lane: 'api', key: 'one', kind: 'step', status: 'running', from_ms: 1000, to_ms: 5000 },
    { lane: 'api', key: 'rev_1', kind: 'wait', status: 'pending', from_ms: 2000, to_ms: 5000 },
  ]);
});

test('overlapping spans are in separate rows, and consecutive ones share a row', () => {
  expect(assignRows([span(0, 10), span(5, 8), span(10, 12)]).map((row) => row.length)).toEqual([2, 1]);
});
