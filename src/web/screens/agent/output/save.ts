/** The names and sizes of saved files (pure). */

/** A file name that is valid on every system. */
export function fileName(agent: string, session: number, stream: 'both' | 'stdout' | 'stderr'): string {
  const word = agent.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[.-]+|[.-]+$/g, '') || 'agent';
  return `${word.slice(0, 80)}-${session}${stream === 'both' ? '' : `-${stream}`}.log`;
}

export function bytesText(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let [amount, at] = [bytes, 0];
  while (amount >= 999.5 && at < units.length - 1) [amount, at] = [amount / 1000, at + 1];
  return `${at === 0 || amount >= 99.5 ? Math.round(amount) : amount.toFixed(1)} ${units[at]}`;
}
