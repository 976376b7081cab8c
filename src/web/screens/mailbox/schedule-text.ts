/** How often a trigger fires, in words. Pure. */
import type { TriggerRecord } from './queries.ts';

const units = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const;

/** `every 15 minutes`, `every hour`: in the largest unit that needs no fraction. */
export function intervalText(seconds: number): string {
  const [unit, length] = units.find(([, each]) => seconds % each === 0)!;
  const count = seconds / length;
  return count === 1 ? `every ${unit}` : `every ${count} ${unit}s`;
}

const days = ['Sundays', 'Mondays', 'Tuesdays', 'Wednesdays', 'Thursdays', 'Fridays', 'Saturdays'];

/** `weekdays at 09:00`; null for patterns that have no short text. */
export function cronText(pattern: string): string | null {
  const [minute = '', hour = '', date, month, weekday = ''] = pattern.trim().split(/\s+/);
  if (month !== '*') return null;
  const every_day = date === '*' && weekday === '*';
  if (every_day && hour === '*') return minutesText(minute);
  if (!isNumber(minute) || !isNumber(hour)) return null;
  const at = `at ${hour.padStart(2, '0')}:${minute.padStart(2, '0')}`;
  if (every_day) return `every day ${at}`;
  if (weekday === '*') return isNumber(date) ? `on day ${Number(date)} of every month ${at}` : null;
  if (date !== '*') return null;
  const named = weekdayText(weekday);
  return named && `${named} ${at}`;
}

/** Texts for patterns that differ only in the minute. */
function minutesText(minute: string): string | null {
  if (minute === '*') return intervalText(60);
  if (isNumber(minute)) return `every hour at :${minute.padStart(2, '0')}`;
  const step = Number(/^\*\/(\d{1,2})$/.exec(minute)?.[1] ?? 0);
  // Other steps start again at each hour, so their intervals differ.
  return step > 0 && 60 % step === 0 ? intervalText(step * 60) : null;
}

function weekdayText(weekday: string): string | null {
  if (/^(1-5|mon-fri)$/i.test(weekday)) return 'weekdays';
  // Seven is Sunday too.
  return /^[0-7]$/.test(weekday) ? days[Number(weekday) % 7]! : null;
}

function isNumber(field: string | undefined): field is string {
  return field !== undefined && /^\d{1,2}$/.test(field);
}

/** When a trigger fires, in words; `code`: a cron pattern that has no short text. */
export function scheduleText({
  every_seconds,
  cron,
  timezone,
}: Pick<TriggerRecord, 'every_seconds' | 'cron' | 'timezone'>):
  | { text: string }
  | { code: string; zone: string } {
  if (every_seconds !== null) return { text: intervalText(every_seconds) };
  if (cron === null) return { text: 'once' };
  const zone = timezone ?? 'UTC';
  const text = cronText(cron);
  return text === null ? { code: cron, zone } : { text: `${text}, ${zone}` };
}
