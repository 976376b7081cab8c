import { expect, test } from 'vitest';
import { buildRows, createScale, type Span } from './timeline.ts';

const MINUTE = 60_000;
const span = (from: number, to: number): Span => ({
  kind: 'working',
  from_ms: from * MINUTE,
  to_ms: to * MINUTE,
});

test('the scale is linear if something is always running', () => {
  const { x, folds } = createScale([span(0, 10), span(5, 20)], 0, 20 * MINUTE);
  expect(folds).toEqual([]);
  expect(x(0)).toBe(0);
  expect(x(5 * MINUTE)).toBeCloseTo(0.25);
  expect(x(20 * MINUTE)).toBeCloseTo(1);
});

test('a long idle time is folded, and later times keep their length', () => {
  const { x, folds, ticks } = createScale([span(0, 10), span(610, 620)], 0, 620 * MINUTE);
  expect(folds).toHaveLength(1);
  expect(folds[0]).toMatchObject({ from_ms: 10 * MINUTE, to_ms: 610 * MINUTE, is_labeled: true });
  expect(x(610 * MINUTE) - x(10 * MINUTE)).toBeCloseTo(0.17);
  expect(folds[0]).toMatchObject({ at: x(10 * MINUTE), width: 0.17 });
  expect(x(10 * MINUTE) - x(0)).toBeCloseTo(x(620 * MINUTE) - x(610 * MINUTE));
  // None in the gap or just before it, where its label is, and none too close to the one before.
  expect(ticks.map(({ ms }) => ms / MINUTE)).toEqual([0, 5, 610, 615, 620]);
});

test('no tick is so near to a folded time that their labels overlap', () => {
  const { folds, ticks } = createScale([span(0, 9.5), span(10.4, 10.6)], 0, 30 * MINUTE);
  expect(folds.map(({ from_ms }) => from_ms / MINUTE)).toEqual([10.6]);
  expect(ticks.map(({ ms }) => ms / MINUTE)).toEqual([0, 2, 4, 6, 8]);
});

test('many folded times have no labels, and leave room for the rest', () => {
  const spans = Array.from({ length: 20 }, (_, at) => span(at * 100, at * 100 + 1));
  const { x, folds } = createScale(spans, 0, 1901 * MINUTE);
  expect(folds.map(({ is_labeled }) => is_labeled)).toEqual(folds.map(() => false));
  expect(folds.reduce((sum, { width }) => sum + width, 0)).toBeLessThanOrEqual(0.4001);
  expect(x(1901 * MINUTE)).toBeCloseTo(1);
});

test('positions never go backwards, and stay on the page', () => {
  const { x } = createScale([span(1, 2), span(90, 95), span(3, 4)], 0, 300 * MINUTE);
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

test('a run in which nothing was busy has all of the width', () => {
  const { x, folds } = createScale([], 0, 10 * MINUTE);
  expect(x(10 * MINUTE)).toBe(1);
  expect(folds).toEqual([]);
});

const at = (ms: number) => new Date(ms).toISOString();
const step = {
  member_id: 'api',
  depends_on: [] as string[],
  status: 'running',
  attempt: 1,
  started_at: null as string | null,
  ended_at: null as string | null,
  waiting_since: null as string | null,
  answer: null,
  answered_by: null as string | null,
};
const wait = { member_id: 'api', open: true, settled_at: null as string | null };
const times = { start_ms: 0, now_ms: 9000 };

test('a step is queued after its dependencies, works until now, and waits in its own row', () => {
  const steps = [
    { ...step, step_key: 'one', status: 'completed', started_at: at(1000), ended_at: at(2000) },
    { ...step, step_key: 'two', depends_on: ['one'], started_at: at(3000) },
    { ...step, step_key: 'three', depends_on: ['two'], status: 'pending' },
  ];
  const waits = [
    { ...wait, since: at(4000) },
    // When it expired is unknown.
    { ...wait, since: at(4000), open: false },
    { ...wait, since: at(1500), open: false, settled_at: at(1700) },
  ];
  expect(buildRows(['api'], steps, waits, times)).toEqual([
    {
      member_id: 'api',
      step_key: 'one',
      status: 'completed',
      spans: [
        { kind: 'queued', from_ms: 0, to_ms: 1000 },
        { kind: 'working', from_ms: 1000, to_ms: 2000 },
        { kind: 'waiting', from_ms: 1500, to_ms: 1700 },
      ],
    },
    {
      member_id: 'api',
      step_key: 'two',
      status: 'running',
      spans: [
        { kind: 'queued', from_ms: 2000, to_ms: 3000 },
        { kind: 'working', from_ms: 3000, to_ms: 9000 },
        { kind: 'waiting', from_ms: 4000, to_ms: 9000 },
      ],
    },
  ]);
});

test('a step that asks waits until now, and rows are in the order of the members', () => {
  const steps = [
    { ...step, step_key: 'ask', status: 'input_required', started_at: at(1000), waiting_since: at(5000) },
    { ...step, step_key: 'first', member_id: 'ui', status: 'ready' },
  ];
  const rows = buildRows(['ui', 'api'], steps, [], times);
  expect(rows.map(({ step_key }) => step_key)).toEqual(['first', 'ask']);
  expect(rows[0]!.spans).toEqual([{ kind: 'queued', from_ms: 0, to_ms: 9000 }]);
  expect(rows[1]!.spans.at(-1)).toEqual({ kind: 'waiting', from_ms: 5000, to_ms: 9000 });
});

test('a step was not queued before it asked the question that was answered', () => {
  const answered = { ...step, step_key: 'ask', answered_by: 'ann' };
  const first = (fields: Partial<typeof answered>) =>
    buildRows(['api'], [{ ...answered, ...fields }], [], times)[0]!.spans[0];
  const before = { kind: 'earlier', from_ms: 0, to_ms: 5000 };
  expect(first({ attempt: 2, started_at: at(5000) })).toEqual(before);
  expect(first({ status: 'ready' })).toEqual({ ...before, to_ms: 9000 });
  // Somebody completed it instead, or the member continues its attempt.
  expect(first({ status: 'completed', started_at: at(5000), ended_at: at(6000) })).toEqual({
    ...before,
    kind: 'queued',
  });
});

test('a step that failed and was tried again was not queued meanwhile', () => {
  const again = { ...step, step_key: 'build', attempt: 2, started_at: at(5000) };
  expect(buildRows(['api'], [again], [], times)[0]!.spans).toEqual([
    { kind: 'earlier', from_ms: 0, to_ms: 5000 },
    { kind: 'working', from_ms: 5000, to_ms: 9000 },
  ]);
});

test('a member that waits outside its steps has a row for that', () => {
  const settled = { ...wait, since: at(1000), open: false, settled_at: at(1500) };
  const spans = [{ kind: 'waiting', from_ms: 1000, to_ms: 1500 }];
  const row = { member_id: 'api', step_key: null, status: 'completed', spans };
  expect(buildRows(['api'], [], [settled], times)).toEqual([row]);
  const open = { kind: 'waiting', from_ms: 2000, to_ms: 9000 };
  expect(buildRows(['api'], [], [settled, { ...wait, since: at(2000) }], times)).toEqual([
    { ...row, status: 'needs_you', spans: [...spans, open] },
  ]);
});
