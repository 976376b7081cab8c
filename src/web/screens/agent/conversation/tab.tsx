/** The conversation with an agent: the transcript, queued prompts and the prompt field, with a side panel. */
import { useRef } from 'react';
import type { AgentRecord } from '../../../api/queries.ts';
import { useAgentLog } from '../../../live/agent-log.ts';
import { cx } from '../../../ui/cx.ts';
import { Failed, NotLive, Skeleton } from '../../../ui/states.tsx';
import { useReportedSettings } from '../side/reported.ts';
import { SideButton, SidePanel } from '../side/side.tsx';
import { ActivityLine } from './activity-line.tsx';
import { Announcer } from './announce.tsx';
import { COLUMN } from './column.ts';
import { Composer } from './composer.tsx';
import { TranscriptList } from './list.tsx';
import { AgentProblem } from './problem.tsx';
import { Queue } from './queue.tsx';

export function ConversationTab({ agent }: { agent: AgentRecord }) {
  const log = useAgentLog(agent.id);
  const view = useReportedSettings(agent, log.view);
  const known = useRef(agent.last_seq);
  // Everything from before the page was opened has arrived.
  const ready = view.last_seq >= known.current;
  const end = useRef<(() => void) | null>(null);
  const onSent = useRef(() => end.current?.()).current;
  const card = useRef<(() => void) | null>(null);
  const onLeave = useRef(() => card.current?.()).current;
  const turn = view.turns.at(-1);
  if (log.gone) return <Failed error={new Error('This agent was deleted.')} />;
  if (log.failure !== null && view.items.length === 0)
    return <Failed error={new Error(log.failure)} retry={log.retry} />;
  return (
    <div className="flex min-h-0 flex-1">
      <div className="flex min-h-0 min-w-0 flex-1 flex-col">
        {log.failure !== null && <NotLive reason={log.failure} retry={log.retry} />}
        <TranscriptList
          view={view}
          ready={ready}
          agent={agent}
          toEnd={end}
          toCard={card}
          end={!ready && view.items.length === 0 ? <Skeleton /> : <AgentProblem agent={agent} />}
        />
        <ActivityLine agent={agent} view={view}>
          <SideButton agent={agent} view={view} />
        </ActivityLine>
        <Announcer view={view} ready={ready} />
        <div className="shrink-0 bg-ground pb-2">
          <div className={cx(COLUMN, 'flex flex-col gap-2')}>
            <Queue agent={agent} turns={`${turn?.prompt_id} ${turn?.ended_ts}`} />
            <Composer
              agent={agent}
              commands={view.commands}
              modes={view.modes}
              options={view.config_options}
              usage={view.usage}
              onSent={onSent}
              onLeave={onLeave}
            />
          </div>
        </div>
      </div>
      <SidePanel agent={agent} view={view} />
    </div>
  );
}
