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
