/** Above the output of a failed agent: why it failed, the last line that it printed, and what to do. */
import { ArrowDown } from 'lucide-react';
import { escapeHidden } from '../../../../core/visible.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { Button } from '../../../ui/button.tsx';
import { useAgentAct } from '../../agents/actions.ts';
import { describeEnd } from '../../agents/order.ts';

export function FailureBar({
  agent,
  onFirstError,
}: {
  agent: AgentRecord;
  /** Null if no line reports an error. */
  onFirstError: (() => void) | null;
}) {
  const act = useAgentAct(agent);
  if (agent.status !== 'failed') return null;
  return (
    <section
      aria-label="Failure"
      className="flex shrink-0 flex-wrap items-center gap-x-3 gap-y-1 border-line border-b px-3 py-1"
    >
      <span className="font-medium text-failed">{describeEnd(agent) || 'Failed'}</span>
      {agent.summary.now && (
        <span className="min-w-0 flex-1 truncate font-mono text-sm" title={escapeHidden(agent.summary.now)}>
          {escapeHidden(agent.summary.now)}
        </span>
      )}
      <span className="ml-auto flex gap-1">
        {onFirstError && (
          <Button variant="quiet" icon={<ArrowDown aria-hidden />} onClick={onFirstError}>
            First error
          </Button>
        )}
        {/* Wider screens have it in the header. */}
        {agent.protocol !== 'acp' && (
          <Button busy={act.isPending} onClick={() => act.mutate('start')} className="md:hidden">
            Restart
          </Button>
        )}
      </span>
    </section>
  );
}
