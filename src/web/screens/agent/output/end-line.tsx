/** How the last session ended, after its last line. */
import type { AgentRecord } from '../../../api/queries.ts';
import { Status } from '../../../ui/status.tsx';
import { Clock } from '../../../ui/time.tsx';

export function EndLine({ agent }: { agent: AgentRecord }) {
  const { status, exit_code, exit_signal, reason, ended_at } = agent;
  if (ended_at === null || status === 'running' || status === 'created') return null;
  const exit = [
    exit_code !== null && `exit code ${exit_code}`,
    exit_signal !== null && `signal ${exit_signal}`,
    reason !== 'exit_code' && reason?.replaceAll('_', ' '),
  ].filter(Boolean);
  return (
    <p className="sticky left-0 flex w-fit flex-wrap items-center gap-x-3 px-3 py-2 font-sans text-muted">
      <Status status={status} />
      {exit.join(' · ')}
      <Clock at={ended_at} />
    </p>
  );
}
