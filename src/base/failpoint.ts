/**
 * Points in the code where tests kill the process. `SVC_FAILPOINT=name:kill` sends SIGKILL when execution reaches
 * `failpoint('name')`, `name:kill@n` when it reaches it for the n-th time. An unset failpoint costs one comparison.
 */
const match = /^([a-z_]+):kill(?:@(\d+))?$/.exec(process.env.SVC_FAILPOINT ?? '');
const armed = match?.[1] ?? null;
let passes_left = Number(match?.[2] ?? 1);

/** Kills the process with SIGKILL if `SVC_FAILPOINT` selects this name and pass. */
export function failpoint(name: string): void {
  if (name !== armed || --passes_left > 0) return;
  process.kill(process.pid, 'SIGKILL');
}
