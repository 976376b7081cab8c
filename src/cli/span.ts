/** An approximate duration (pure): `45s`, `12m`, `3h`, `2d`. */
export function formatSpan(from_ms: number, until_ms: number): string {
  const seconds = Math.max(0, Math.floor((until_ms - from_ms) / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 2 * 3600) return `${Math.floor(seconds / 60)}m`;
  return seconds < 48 * 3600 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`;
}
