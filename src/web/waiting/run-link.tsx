/** Links the card of a waiting run or step to its run. */
import { Link } from '@tanstack/react-router';
import { escapeHidden } from '../../core/visible.ts';
import type { WaitingRunRecord } from '../api/queries.ts';

interface RunLinkProps {
  run: Pick<WaitingRunRecord, 'team_id' | 'team_name' | 'run_id' | 'run_number'>;
  step_key?: string;
}

export function RunLink({ run: { team_id, team_name, run_id, run_number }, step_key }: RunLinkProps) {
  return (
    <Link
      to="/teams/$team_id/runs/$run_id"
      params={{ team_id, run_id }}
      className="tap inline-flex min-w-0 items-center font-medium hover:underline"
    >
      <span className="break-all">
        {escapeHidden(team_name)} #{run_number}
        {step_key !== undefined && ` · ${escapeHidden(step_key)}`}
      </span>
    </Link>
  );
}
