/** Labels as text, one `key=value` per line (pure). */
export function formatLabels(labels: Record<string, string>): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join('\n');
}

export function parseLabels(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return Object.fromEntries(
    lines.map((line) => {
      const [key = '', ...value] = line.split('=');
      return [key.trim(), value.join('=').trim()];
    }),
  );
}

type Labels = Readonly<Record<string, string>>;

/** `now` with what the user has changed from `before` to `after`; null if that is nothing. */
export function withLabelChanges(now: Labels, before: Labels, after: Labels): Record<string, string> | null {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changed = new Set(keys.filter((key) => before[key] !== after[key]));
  if (changed.size === 0) return null;
  const of = (labels: Labels, is_changed: boolean) =>
    Object.entries(labels).filter(([key]) => changed.has(key) === is_changed);
  return Object.fromEntries([...of(now, false), ...of(after, true)]);
}
