/** When triggers fire: time zones, daylight saving changes, and clocks that are set. */
import { expect, test } from 'vitest';
import { firstTime, firstTimes, nextTime, type Schedule, timeInZone } from './schedule.ts';

const NONE: Schedule = { at: null, every_seconds: null, cron: null, timezone: null };
const cron = (pattern: string, timezone: string | null = null): Schedule => ({
  ...NONE,
  cron: pattern,
  timezone,
});
const first = (schedule: Schedule, now: string) =>
  new Date(firstTime(schedule, Date.parse(now))).toISOString();

/** Consecutive times, each computed when the one before has fired. */
function times(schedule: Schedule, from: string, count: number): string[] {
  const found: string[] = [];
  for (let at = Date.parse(from); found.length < count; ) {
    at = nextTime(schedule, at, at)!;
    found.push(new Date(at).toISOString());
  }
  return found;
}

test('a pattern has five fields, and is in UTC by default', () => {
  expect(first(cron('30 2 * * *'), '2026-01-01T00:00:00Z')).toBe('2026-01-01T02:30:00.000Z');
  expect(first(cron('30 2 * * *', 'Asia/Kolkata'), '2026-01-01T00:00:00Z')).toBe('2026-01-01T21:00:00.000Z');
  for (const wrong of ['* * * * * *', '* * * *', '', 'soon', '61 * * * *']) {
    expect(() => first(cron(wrong), '2026-01-01T00:00:00Z')).toThrow('cron must be a pattern of five fields');
  }
  expect(() => first(cron('* * * * *', 'Mars/Olympus'), '2026-01-01T00:00:00Z')).toThrow(
    'timezone must be an IANA time zone',
  );
  expect(() => first(cron('0 0 30 2 *'), '2026-01-01T00:00:00Z')).toThrow(
    'cron must match a time in the future',
  );
});

test.each(['2030-01-01T09:00:00', '2030-01-01T09:00:00Z', '1 Jan 2030 9:00 GMT', '0 9 * * 1:5'])(
  'the date %s is not a cron pattern',
  (date) => {
    expect(() => first(cron(date), '2026-01-01T00:00:00Z')).toThrow('cron must be a pattern of five fields');
  },
);

test('a time that the zone skips or repeats fires once', () => {
  expect(times(cron('30 2 * * *', 'Europe/Berlin'), '2026-03-28T00:00:00Z', 3)).toEqual([
    '2026-03-28T01:30:00.000Z',
    '2026-03-29T01:00:00.000Z',
    '2026-03-30T00:30:00.000Z',
  ]);
  expect(times(cron('30 2 * * *', 'Europe/Berlin'), '2026-10-24T00:00:00Z', 3)).toEqual([
    '2026-10-24T00:30:00.000Z',
    '2026-10-25T00:30:00.000Z',
    '2026-10-26T01:30:00.000Z',
  ]);
});

test('lists and ranges of times that the zone skips or repeats fire once, wildcards and steps follow the clock', () => {
  const berlin = (pattern: string, from: string, count: number) =>
    times(cron(pattern, 'Europe/Berlin'), from, count);
  expect(berlin('0,30 2 * * *', '2026-03-28T12:00:00Z', 2)).toEqual([
    '2026-03-29T01:00:00.000Z',
    '2026-03-30T00:00:00.000Z',
  ]);
  expect(berlin('0 1-2 * * *', '2026-10-24T12:00:00Z', 3)).toEqual([
    '2026-10-24T23:00:00.000Z',
    '2026-10-25T00:00:00.000Z',
    '2026-10-26T00:00:00.000Z',
  ]);
  expect(berlin('*/30 2 * * *', '2026-03-28T12:00:00Z', 1)).toEqual(['2026-03-30T00:00:00.000Z']);
  expect(berlin('*/30 2 * * *', '2026-10-24T12:00:00Z', 4)).toEqual([
    '2026-10-25T00:00:00.000Z',
    '2026-10-25T00:30:00.000Z',
    '2026-10-25T01:00:00.000Z',
    '2026-10-25T01:30:00.000Z',
  ]);
});

test('skips missed times and keeps the interval', () => {
  const every: Schedule = { ...NONE, every_seconds: 60 };
  expect(nextTime(every, 100_000, 100_001)).toBe(160_000);
  expect(nextTime(every, 100_000, 160_000)).toBe(220_000);
  expect(nextTime(every, 100_000, 1_000_000)).toBe(1_060_000);
  const due = Date.parse('2026-01-01T09:00:00Z');
  const late = Date.parse('2026-01-05T12:00:00Z');
  expect(new Date(nextTime(cron('0 9 * * *'), due, late)!).toISOString()).toBe('2026-01-06T09:00:00.000Z');
});

test('does not repeat a time after the clock was set back', () => {
  const due = Date.parse('2026-01-01T09:00:00Z');
  const before = due - 3_600_000;
  expect(new Date(nextTime(cron('0 9 * * *'), due, before)!).toISOString()).toBe('2026-01-02T09:00:00.000Z');
  expect(nextTime({ ...NONE, every_seconds: 60 }, due, before)).toBe(due + 60_000);
});

test('a fixed time is due once', () => {
  expect(firstTime({ ...NONE, at: 2_000 }, 1_999)).toBe(2_000);
  expect(() => firstTime({ ...NONE, at: 2_000 }, 2_000)).toThrow('at must be in the future');
  expect(nextTime({ ...NONE, at: 2_000 }, 2_000, 2_000)).toBe(null);
});

test('lists the first times of a new trigger', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  const from = (schedule: Schedule) =>
    firstTimes(schedule, now, 3).map((time) => new Date(time).toISOString().slice(0, 16));
  expect(from({ ...NONE, every_seconds: 3600 })).toEqual([
    '2026-01-01T01:00',
    '2026-01-01T02:00',
    '2026-01-01T03:00',
  ]);
  expect(from(cron('0 9 * * 1-5', 'Europe/Berlin'))).toEqual([
    '2026-01-01T08:00',
    '2026-01-02T08:00',
    '2026-01-05T08:00',
  ]);
  expect(from({ ...NONE, at: now + 60_000 })).toEqual(['2026-01-01T00:01']);
  expect(() => from({ ...NONE, at: now })).toThrow('at must be in the future');
});

test('reads a local time in a zone', () => {
  const utc = (local: string, timezone: string) => {
    const time = timeInZone(local, timezone);
    return time === null ? null : new Date(time).toISOString();
  };
  expect(utc('2027-01-05T09:00', 'Europe/Berlin')).toBe('2027-01-05T08:00:00.000Z');
  expect(utc('2027-07-05T09:00:30', 'Europe/Berlin')).toBe('2027-07-05T07:00:30.000Z');
  // The zone skips this time.
  expect(utc('2027-03-28T02:30', 'Europe/Berlin')).toBe('2027-03-28T01:30:00.000Z');
  expect(utc('2027-01-05T09:00', 'Mars/Olympus')).toBe(null);
  expect(utc('', 'UTC')).toBe(null);
});
