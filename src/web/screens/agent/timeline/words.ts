/** The texts of the timeline (pure). */
import { spanText, tookText } from '../../../ui/time.tsx';
import type { Entry, Lane, TimedEntry } from './entries.ts';
import { foldWidths, type Segment } from './scale.ts';

export const laneTitles: Readonly<Record<Lane, string>> = {
  sessions: 'Sessions',
  turns: 'Turns',
  tools: 'Tools',
  waits: 'Waiting for you',
  warnings: 'Warnings',
};

/** Whether entries of this lane have no duration. */
export function isMoment(lane: Lane): boolean {
  return lane === 'warnings';
}

/** `Turn 2 · completed, 12 s`. */
export function entryText({ label, lane, from, to, result, is_open }: TimedEntry): string {
  const how = result ? ` · ${result.text}` : '';
  const took = isMoment(lane) ? '' : `, ${tookText(to - from)}${is_open ? ' so far' : ''}`;
  return `${label}${how}${took}`;
}

/** What a folded segment is: `⋯ 1m03s idle`, or as much of it as there is room for. */
export function foldText(segment: Segment): string {
  const { full, short } = foldWidths;
  if (segment.width < short) return '⋯';
  const span = spanText((segment.to - segment.from) * 1000);
  return segment.width < full ? `⋯ ${span}` : `⋯ ${span} ${segment.fold}`;
}

export function foldTitle({ from, to, fold }: Segment): string {
  const span = spanText((to - from) * 1000);
  return fold === 'waiting'
    ? `Waited ${span} for a person, not shown to scale`
    : `${span} without events, not shown to scale`;
}

/** `3 turns · 24 tool calls · waited 2m10s for you`. */
export function summarize(entries: readonly Entry[], now: number): string {
  const count = (lane: Lane, one: string) => {
    const n = entries.filter((entry) => entry.lane === lane).length;
    return n === 0 ? [] : `${n} ${one}${n === 1 ? '' : 's'}`;
  };
  const waited = entries
    .filter(({ lane }) => lane === 'waits')
    .reduce((sum, { from, to }) => sum + Math.max(0, (to ?? now) - from), 0);
  return [
    count('sessions', 'session'),
    count('turns', 'turn'),
    count('tools', 'tool call'),
    waited > 0 ? `waited ${tookText(waited)} for you` : [],
  ]
    .flat()
    .join(' · ');
}

const formats = {
  tenths: { hour: 'numeric', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 1 },
  seconds: { hour: 'numeric', minute: '2-digit', second: '2-digit' },
  minutes: { hour: 'numeric', minute: '2-digit' },
  days: { day: 'numeric', month: 'short' },
} as const satisfies Record<string, Intl.DateTimeFormatOptions>;
const made = new Map<keyof typeof formats, Intl.DateTimeFormat>();

/** The label of a tick, as exact as the distance between ticks. */
export function tickText(ts: number, step_s: number): string {
  const kind = step_s < 1 ? 'tenths' : step_s < 60 ? 'seconds' : step_s < 86_400 ? 'minutes' : 'days';
  const format = made.get(kind) ?? new Intl.DateTimeFormat(undefined, formats[kind]);
  made.set(kind, format);
  return format.format(ts * 1000);
}
