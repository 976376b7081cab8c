/** Computes when a trigger fires next. Pure, except for the system's time zone data. */
import { Cron } from 'croner';
import { invalid } from '../../../core/problem.ts';
import type { TriggerTimes } from '../contract.ts';

export interface Schedule {
  /** Unix ms. */
  at: number | null;
  every_seconds: number | null;
  cron: string | null;
  timezone: string | null;
}

/** As requested: `at` in RFC 3339. */
export function toSchedule({ at, every_seconds, cron, timezone }: TriggerTimes): Schedule {
  return {
    at: at === undefined ? null : Date.parse(at),
    every_seconds: every_seconds ?? null,
    cron: cron ?? null,
    timezone: timezone ?? null,
  };
}

/**
 * Unix ms; null: never again. `from`: when it last fired, or was due. Times up to `now` are skipped. Throws if its schedule is
 * invalid, including when this system no longer knows its time zone.
 */
export function nextTime(schedule: Schedule, from: number, now: number): number | null {
  const { every_seconds, cron } = schedule;
  // A clock that was set back must not repeat a time.
  const after = Math.max(from, now);
  if (every_seconds !== null) {
    const every_ms = every_seconds * 1000;
    return from + every_ms * (Math.floor((after - from) / every_ms) + 1);
  }
  if (cron !== null) return parseCron(schedule).nextRun(new Date(after))?.getTime() ?? null;
  return null;
}

/** The first time of a new trigger, Unix ms. Throws if its schedule is invalid. */
export function firstTime(schedule: Schedule, now: number): number {
  const { at } = schedule;
  if (at !== null) {
    if (at <= now) throw invalid('at must be in the future');
    return at;
  }
  const first = nextTime(schedule, now, now);
  if (first === null) throw invalid('cron must match a time in the future');
  return first;
}

/** The first times of a new trigger, Unix ms, at most `count`. Throws if its schedule is invalid. */
export function firstTimes(schedule: Schedule, now: number, count: number): number[] {
  const times: number[] = [];
  let next: number | null = firstTime(schedule, now);
  while (next !== null && times.length < count) {
    times.push(next);
    next = nextTime(schedule, next, next);
  }
  return times;
}

/** Unix ms of a local time such as `2027-01-31T09:00` in an IANA zone; null if one of them is invalid. */
export function timeInZone(local: string, timezone: string): number | null {
  try {
    return new Cron(local, { timezone }).getOnce()?.getTime() ?? null;
  } catch {
    return null;
  }
}

function parseCron({ cron, timezone }: Schedule): Cron {
  if (!isZone(timezone)) throw invalid('timezone must be an IANA time zone');
  const malformed = invalid('cron must be a pattern of five fields');
  // Croner reads any text with a colon as a date, whatever the mode.
  if (cron!.includes(':')) throw malformed;
  try {
    // Lists and ranges are fixed times, too. When clocks go forward, all skipped times fire once together; when they go back, a
    // repeated time fires only the first time.
    return new Cron(cron!, { mode: '5-part', timezone: timezone ?? 'UTC', fixedTimeRule: 'no-wildcard' });
  } catch {
    throw malformed;
  }
}

export function isZone(timezone: string | null): boolean {
  try {
    return timezone === null || Boolean(new Intl.DateTimeFormat('en', { timeZone: timezone }));
  } catch {
    return false;
  }
}
