/** Wall time in milliseconds since the Unix epoch, behind a seam so that tests can move it. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** RFC 3339 UTC with milliseconds, the form of every time in a record. */
export function rfc3339(ms: number): string {
  return new Date(ms).toISOString();
}

export function rfc3339OrNull(ms: number | null | undefined): string | null {
  return ms === null || ms === undefined ? null : rfc3339(ms);
}
