/**
 * Places where tests kill the process: `SVC_FAILPOINT=name:kill` ends it by SIGKILL when it comes to `failpoint('name')`,
 * `name:kill@n` when it comes there for the n-th time. Unset, a failpoint costs a comparison.
 */
const match = /^([a-z_]+):kill(?:@(\d+))?$/.exec(process.env.SVC_FAILPOINT ?? '');
const armed = match?.[1] ?? null;
let passes_left = Number(match?.[2] ?? 1);

export function failpoint(name: string): void {
  if (name !== armed || --passes_left > 0) return;
  process.kill(process.pid, 'SIGKILL');
}
