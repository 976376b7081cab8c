/** What the agent is doing now. It is below the scrolling part, so that nothing moves when it changes. */

import type { View } from '../../../../acp/transcript/transcript.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { awaitsAnswer } from '../../../ui/agent-state.ts';
import { cx } from '../../../ui/cx.ts';
import { Ago } from '../../../ui/time.tsx';
import { getProgram } from '../../agents/order.ts';
import { COLUMN } from './column.ts';
import { Elapsed } from './elapsed.tsx';

export function ActivityLine({ agent, view }: { agent: AgentRecord; view: View }) {
  const turn = view.turns.at(-1);
  return (
    <div className={cx(COLUMN, 'h-6 shrink-0 text-muted text-sm')}>
      {agent.activity === 'starting' ? (
        <p role="status">
          Starting {getProgram(agent)}… {agent.started_at && <Ago at={agent.started_at} suffix="" />}
        </p>
      ) : (
        view.working &&
        turn && (
          <p>
            {view.stopping
              ? 'Cancelling… '
              : awaitsAnswer(agent)
                ? 'Waiting for your answer · '
                : 'Working… '}
            <Elapsed from={turn.started_ts} to={null} />
          </p>
        )
      )}
    </div>
  );
}
