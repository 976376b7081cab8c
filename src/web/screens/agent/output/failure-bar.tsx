/** Above the output of a failed agent, in one row: what the header of the page does not say on this screen, and what to do. */
import { ArrowDown } from 'lucide-react';
import { escapeHidden } from '../../../../core/visible.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { Button } from '../../../ui/button.tsx';
import { cx } from '../../../ui/cx.ts';
import { useAgentAct } from '../../agents/actions.ts';
import { RestartsIn } from '../../agents/facts.tsx';
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
  const { now } = agent.summary;
  return (
    <section
      aria-label="Failure"
      className={cx(
        'flex shrink-0 items-center gap-x-3 border-line border-b px-3 py-1',
        !now && !onFirstError && 'md:hidden',
      )}
    >
      {/* Wider screens have the cause and the button in the header. The last line is in view below. */}
      <span className="min-w-0 flex-1 font-medium text-failed md:hidden">
        {describeEnd(agent) || 'Failed'}
        <RestartsIn agent={agent} />
      </span>
      {agent.protocol !== 'acp' && (
        <Button busy={act.isPending} onClick={() => act.mutate('start')} className="md:hidden">
          Restart
        </Button>
      )}
      {now && (
        <span className="min-w-0 flex-1 truncate font-mono text-sm max-md:hidden" title={escapeHidden(now)}>
          {escapeHidden(now)}
        </span>
      )}
      {onFirstError && (
        <Button
          variant="quiet"
          icon={<ArrowDown aria-hidden />}
          onClick={onFirstError}
          className="ml-auto max-md:hidden"
        >
          First error
        </Button>
      )}
    </section>
  );
}
