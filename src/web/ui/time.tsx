/**
 * Times that tick without rendering anything else: each text subscribes to a shared clock. The tooltip has the full time.
 */
import { type PointerEvent, useSyncExternalStore } from 'react';
import { cx } from './cx.ts';

function makeClock(every_ms: number) {
  const listeners = new Set<() => void>();
  let now = Date.now();
  let timer: ReturnType<typeof setInterval> | null = null;
  return {
    subscribe(listener: () => void) {
      listeners.add(listener);
      timer ??= setInterval(() => {
        now = Date.now();
        for (const each of listeners) each();
      }, every_ms);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0 && timer) {
          clearInterval(timer);
          timer = null;
        }
      };
    },
    now() {
      // Without subscribers the clock does not tick.
      if (!timer) now = Date.now();
      return now;
    },
  };
}

const seconds = makeClock(1000);

export function useNow(): number {
  return useSyncExternalStore(seconds.subscribe, seconds.now);
}

/** `12 s`, `2m14s`, `3h05m`, `4d`. */
export function spanText(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  const pad = (n: number) => String(n).padStart(2, '0');
  if (s < 3600) return `${Math.floor(s / 60)}m${pad(s % 60)}s`;
  if (s < 86_400) return `${Math.floor(s / 3600)}h${pad(Math.floor(s / 60) % 60)}m`;
  return `${Math.floor(s / 86_400)}d`;
}

/** How long something took: `< 0.1 s`, `2.4 s`, `2m14s`. */
export function tookText(seconds: number): string {
  if (seconds < 0.05) return '< 0.1 s';
  return seconds < 10 ? `${seconds.toFixed(1)} s` : spanText(seconds * 1000);
}

/** `12 s`, `2m`, `3h`, `4d`: for lists, in which ticking seconds would distract. */
export function shortSpan(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)}m`;
  return s < 86_400 ? `${Math.floor(s / 3600)}h` : `${Math.floor(s / 86_400)}d`;
}

/** How long ago, in one unit. Renders only when the text changes. */
export function ShortAgo({
  at,
  label = '',
  className,
}: {
  at: string;
  /** Before the span in the tooltip. Without it, `ago` follows. */
  label?: string;
  className?: string | undefined;
}) {
  const ms = Date.parse(at);
  const text = useSyncExternalStore(seconds.subscribe, () => shortSpan(seconds.now() - ms));
  return (
    <time
      dateTime={at}
      onPointerEnter={({ currentTarget }) => {
        const span = spanText(Date.now() - ms);
        currentTarget.title = `${new Date(ms).toLocaleString()} · ${label ? `${label} ${span}` : `${span} ago`}`;
      }}
      className={cx('whitespace-nowrap', className)}
    >
      {text}
    </time>
  );
}

/** How long until a time, in one unit: `in 12 s`. Renders only when the text changes. */
export function Until({ at }: { at: string | number }) {
  const ms = new Date(at).getTime();
  const text = useSyncExternalStore(seconds.subscribe, () => {
    const left = ms - seconds.now();
    return left <= 0 ? 'now' : `in ${shortSpan(left)}`;
  });
  return (
    <time dateTime={new Date(ms).toISOString()} onPointerEnter={setTooltip} className="whitespace-nowrap">
      {text}
    </time>
  );
}

/** Sets the tooltip when it may be needed: the first time of a page that is formatted takes longer than rendering a list. */
function setTooltip({ currentTarget: time }: PointerEvent<HTMLTimeElement>): void {
  time.title = new Date(time.dateTime).toLocaleString();
}

/** How long ago, ticking. */
export function Ago({ at, suffix = ' ago' }: { at: string | number; suffix?: string }) {
  const ms = typeof at === 'number' ? at : Date.parse(at);
  const now = useNow();
  return (
    <time dateTime={new Date(ms).toISOString()} onPointerEnter={setTooltip} className="whitespace-nowrap">
      {spanText(now - ms)}
      {suffix}
    </time>
  );
}

/** How long something has taken so far, or took. */
export function Duration({ from, to }: { from: string; to: string | null }) {
  return to === null ? (
    <Ago at={from} suffix="" />
  ) : (
    <span>{spanText(Date.parse(to) - Date.parse(from))}</span>
  );
}

const minutes = makeClock(60_000);

/** Becomes false at midnight, also in a row that nothing else renders again. */
function useIsToday(date: Date): boolean {
  return useSyncExternalStore(minutes.subscribe, () => date.toDateString() === new Date().toDateString());
}

/** The time of day, with the date if it is not today. */
export function Clock({ at }: { at: string | number }) {
  const date = new Date(at);
  const today = useIsToday(date);
  const time = date.toLocaleTimeString(undefined, { hour: 'numeric', minute: '2-digit', second: '2-digit' });
  return (
    <time dateTime={date.toISOString()} title={date.toLocaleString()} className="whitespace-nowrap">
      {today ? time : `${date.toLocaleDateString()} ${time}`}
    </time>
  );
}

let day_time: Intl.DateTimeFormat | null = null;

/** Hours and minutes, with the date if it is not today. `ts`: Unix seconds. */
export function TimeOfDay({ ts, className }: { ts: number; className?: string }) {
  const date = new Date(ts * 1000);
  const today = useIsToday(date);
  day_time ??= new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit' });
  const time = day_time.format(date);
  return (
    <time
      dateTime={date.toISOString()}
      onPointerEnter={setTooltip}
      className={cx('whitespace-nowrap', className)}
    >
      {today ? time : `${date.toLocaleDateString()} ${time}`}
    </time>
  );
}
