/** Wall time: the clock that services read, and RFC 3339 formatting. */

/** Wall time in milliseconds since the Unix epoch. An interface, so that tests can control time. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** Formats a time as RFC 3339 UTC with milliseconds, the format of every time in a record. */
export function rfc3339(ms: number): string {
  return new Date(ms).toISOString();
}

export function rfc3339OrNull(ms: number | null | undefined): string | null {
  return ms === null || ms === undefined ? null : rfc3339(ms);
}
