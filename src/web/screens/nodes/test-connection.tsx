/** The connection test of a node, with a fix for the step that failed. */
import { useQuery } from '@tanstack/react-query';
import { Check, Minus, X } from 'lucide-react';
import type { ReactNode } from 'react';
import { errorMessage } from '../../api/client.ts';
import { Button } from '../../ui/button.tsx';
import { ActionError, Failed, Skeleton } from '../../ui/states.tsx';
import { Clock, spanText } from '../../ui/time.tsx';
import { healthQuery, useChangeNode } from './data.ts';
import { type Fix, getFix, type HealthReport, listSteps, type NodeRecord, type Step } from './health.ts';

interface FixActions {
  onJoin: () => void;
  onRegister: (id: string) => void;
}

export function TestConnection({ node, ...actions }: FixActions & { node: NodeRecord }) {
  const read = useQuery({ ...healthQuery(node.id), refetchOnMount: 'always' });
  const { data: report, isFetching } = read;
  const test = () => void read.refetch();
  return (
    <section aria-labelledby="test-connection" className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h3 id="test-connection" className="font-medium">
          Test connection
        </h3>
        <Button busy={isFetching} onClick={test}>
          {isFetching ? 'Testing…' : 'Test again'}
        </Button>
      </div>
      {report ? (
        <>
          <ol aria-busy={isFetching} className="flex flex-col gap-1">
            {listSteps(report, node).map((step) => (
              <StepLine key={step.title} step={step}>
                <FixButton step={step} node={node} onFixed={test} {...actions} />
              </StepLine>
            ))}
          </ol>
          <p role="status" className="text-muted text-sm">
            {read.error ? errorMessage(read.error) : formatSummary(report)}
            {' · '}
            <Clock at={read.dataUpdatedAt} />
          </p>
        </>
      ) : read.error && !isFetching ? (
        <Failed error={read.error} />
      ) : (
        <Skeleton rows={5} height="h-5" />
      )}
    </section>
  );
}

function StepLine({ step: { title, check }, children }: { step: Step; children: ReactNode }) {
  const [Icon, color, word] =
    check === null
      ? ([Minus, 'text-muted', 'not tested'] as const)
      : check.ok
        ? ([Check, 'text-completed', 'passed'] as const)
        : ([X, 'text-failed', 'failed'] as const);
  return (
    <li className="min-w-0">
      <div className="flex flex-wrap items-center gap-x-2">
        <Icon aria-hidden className={`size-4 shrink-0 ${color}`} />
        <span className="w-24 shrink-0">
          {title}
          <span className="sr-only"> {word}</span>
        </span>
        <span className={`min-w-40 flex-1 break-words ${check?.ok === false ? 'text-failed' : 'text-muted'}`}>
          {check?.error}
        </span>
        {check && <span className="whitespace-nowrap text-muted">{check.ms} ms</span>}
      </div>
      {check && !check.ok && (
        <div className="mt-1 flex flex-col items-start gap-2 pl-6">
          {check.hint && <p className="break-words text-sm">{check.hint}</p>}
          {children}
        </div>
      )}
    </li>
  );
}

function FixButton({
  step: { check },
  node,
  onFixed,
  onJoin,
  onRegister,
}: FixActions & { step: Step; node: NodeRecord; onFixed: () => void }) {
  const change = useChangeNode(node, onFixed);
  const fix = check && !check.ok ? getFix(check, node) : null;
  if (fix === null) return null;
  const applyFix = ({ kind, ...rest }: Fix) => {
    if (kind === 'join') onJoin();
    else if ('changes' in rest) change.mutate(rest.changes);
    else if ('id' in rest) onRegister(rest.id);
  };
  return (
    <>
      <Button variant="primary" busy={change.isPending} onClick={() => applyFix(fix)}>
        {fix.label}
      </Button>
      <ActionError error={change.error} />
    </>
  );
}

/** A summary of the report in one line. */
function formatSummary({ status, uptime_seconds, agents, clock_skew_ms, disk }: HealthReport): string {
  const parts: string[] = [status];
  if (uptime_seconds !== null) parts.push(`up ${spanText(uptime_seconds * 1000)}`);
  if (agents !== null) parts.push(`${agents} ${agents === 1 ? 'agent' : 'agents'} running`);
  if (disk) {
    parts.push(`${Math.floor(disk.free_bytes / 2 ** 30)} GiB free`);
    if (!disk.starts_allowed) parts.push('too full to start agents');
  }
  if (clock_skew_ms !== null && Math.abs(clock_skew_ms) >= 1000) {
    const side = clock_skew_ms > 0 ? 'ahead' : 'behind';
    parts.push(`clock ${spanText(Math.abs(clock_skew_ms))} ${side}`);
  }
  return parts.join(' · ');
}
