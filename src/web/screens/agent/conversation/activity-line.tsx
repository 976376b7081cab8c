/** What the agent is doing now. It is below the scrolling part, so that nothing moves when it changes. */
import type { ReactNode } from 'react';
import type { View } from '../../../../acp/transcript/transcript.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { awaitsAnswer } from '../../../ui/agent-state.ts';
import { cx } from '../../../ui/cx.ts';
import { Ago } from '../../../ui/time.tsx';
import { answerAwaitedSince } from '../../../waiting/queue.ts';
import { useWaiting } from '../../../waiting/use-waiting.ts';
import { getProgram } from '../../agents/order.ts';
import { COLUMN } from './column.ts';
import { Elapsed } from './elapsed.tsx';

/** `children`: at the end of the line, on narrow screens. */
export function ActivityLine({
  agent,
  view,
  children,
}: {
  agent: AgentRecord;
  view: View;
  children: ReactNode;
}) {
  const turn = view.turns.at(-1);
  return (
    <div
      className={cx(
        COLUMN,
        'flex min-h-6 shrink-0 items-center gap-3 text-muted text-sm max-lg:min-h-8 max-lg:pointer-coarse:min-h-11',
      )}
    >
      {agent.activity === 'starting' ? (
        <p role="status" className="shrink-0">
          Starting {getProgram(agent)}… {agent.started_at && <Ago at={agent.started_at} suffix="" />}
        </p>
      ) : (
        view.working &&
        turn && (
          <p className="shrink-0">
            {!view.stopping && awaitsAnswer(agent) ? (
              <AnswerWait agent_id={agent.id} />
            ) : (
              <>
                {view.stopping ? 'Cancelling… ' : 'Working… '}
                <Elapsed from={turn.started_ts} to={null} />
              </>
            )}
          </p>
        )
      )}
      {children}
    </div>
  );
}

/** The request may arrive later than the record of its agent. */
function AnswerWait({ agent_id }: { agent_id: string }) {
  const { open } = useWaiting();
  const since = answerAwaitedSince(open, agent_id);
  return (
    <>
      Waiting for your answer
      {since !== null && (
        <>
          {' · '}
          <Ago at={since} suffix="" />
        </>
      )}
    </>
  );
}
