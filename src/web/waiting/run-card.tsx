/** A run that is waiting for a person, but not at any step: its leader has used its rounds, or the outcome of one is unknown. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { CircleSlash, OctagonPause } from 'lucide-react';
import { memo, useId } from 'react';
import { escapeHidden } from '../../core/visible.ts';
import { useAct } from '../api/act.ts';
import { call } from '../api/client.ts';
import { readAgainOnConflict } from '../api/conflict.ts';
import { keys } from '../api/keys.ts';
import { putResponse } from '../api/put-response.ts';
import { runQuery, type WaitingRunRecord } from '../api/queries.ts';
import { table } from '../table.ts';
import { Button, buttonClass } from '../ui/button.tsx';
import { useOnline } from '../ui/online.ts';
import { ActionError } from '../ui/states.tsx';
import { Ago } from '../ui/time.tsx';
import { Truncated } from '../ui/truncated.tsx';
import { CardBar, CardBody, CardFrame } from './card-frame.tsx';
import { RunLink } from './run-link.tsx';

export interface RunCardProps {
  run: WaitingRunRecord;
  open: boolean;
  className?: string;
}

export const RunCard = memo(function RunCard({ run, open, className }: RunCardProps) {
  const id = useId();
  const online = useOnline();
  const resume = useResume(run);
  const outcome = useOutcome(run, resume.isSuccess);
  const reason = escapeHidden(run.reason);
  return (
    <CardFrame
      card={run.run_id}
      open={open}
      answered={resume.isPending || resume.isSuccess}
      {...(open ? { 'aria-labelledby': id } : { 'aria-label': `${reason}: ${outcome}` })}
      {...(className && { className })}
    >
      {open ? (
        <>
          <CardBody>
            <header className="flex flex-wrap items-center gap-x-2 text-sm">
              <span className="inline-flex items-center gap-1 font-medium text-needs">
                <OctagonPause aria-hidden className="size-3.5" /> Run
              </span>
              <RunLink run={run} />
              <span className="ml-auto text-muted">
                waiting for <Ago at={run.waiting_since} suffix="" />
              </span>
            </header>
            <p id={id} className="whitespace-pre-wrap break-words font-medium">
              <bdi>{reason || 'This run waits for you.'}</bdi>
            </p>
            <p className="text-muted text-sm">
              Resume the run to start another round of its leader, or open it to cancel it.
            </p>
          </CardBody>
          <CardBar>
            <ActionError error={resume.error} />
            <div className="flex flex-wrap gap-2">
              <Button
                variant="primary"
                busy={resume.isPending}
                disabled={!online}
                onClick={() => resume.mutate(run.version)}
              >
                {resume.isPending ? 'Resuming…' : 'Resume run'}
              </Button>
              <Link to="/teams/$team_id/runs/$run_id" params={run} className={buttonClass()}>
                Open run
              </Link>
            </div>
            {!online && <p className="text-muted">You are offline. Answer when you are back online.</p>}
          </CardBar>
        </>
      ) : (
        <>
          <CircleSlash aria-hidden className="size-3.5 shrink-0 text-muted" />
          <RunLink run={run} />
          <span>{outcome}</span>
          <Truncated className="min-w-0 text-muted" title={reason}>
            {reason}
          </Truncated>
        </>
      )}
    </CardFrame>
  );
});

const endings = table({
  running: 'Resumed',
  completed: 'The run is completed',
  failed: 'The run has failed',
  cancelled: 'The run was cancelled',
});

/** How the wait ended, from the live record of the run. */
function useOutcome({ run_id }: WaitingRunRecord, resumed_here: boolean): string {
  const { data } = useQuery({ ...runQuery(run_id), enabled: false });
  if (resumed_here) return 'Resumed';
  return endings[data?.status ?? ''] ?? 'No longer waiting';
}

function useResume({ team_id, run_id }: WaitingRunRecord) {
  const queries = useQueryClient();
  return useAct(
    (version: number, idempotency_key) => {
      const sent = call('resumeRun', { params: { team_id, run_id }, body: { version }, idempotency_key });
      return readAgainOnConflict(queries, [keys.waiting_runs, keys.run(run_id)], sent);
    },
    (run) => {
      putResponse(queries, { one: keys.run(run_id) }, run);
      queries.setQueryData<WaitingRunRecord[]>(keys.waiting_runs, (runs) =>
        runs?.filter((other) => other.run_id !== run_id),
      );
      for (const queryKey of [keys.waiting_runs, keys.steps(run_id)])
        void queries.invalidateQueries({ queryKey });
    },
  );
}
