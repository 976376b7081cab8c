/** The actions of an agent's row in the list. */
import { useNavigate } from '@tanstack/react-router';
import { FileText, Play, RotateCw, Square } from 'lucide-react';
import type { HTMLAttributes, ReactElement } from 'react';
import type { AgentRecord } from '../../api/queries.ts';
import { canStop, stopLabel } from '../../ui/agent-state.ts';
import { Menu } from '../../ui/menu.tsx';
import { useAgentAct } from './actions.ts';
import { useArchive } from './archive.tsx';

export default function ActionsMenu({
  agent,
  trigger,
}: {
  agent: AgentRecord;
  trigger: ReactElement<HTMLAttributes<HTMLElement>>;
}) {
  const act = useAgentAct(agent);
  const archive = useArchive(agent);
  const navigate = useNavigate();
  const is_running = agent.status === 'running';
  return (
    <Menu
      starts_open
      trigger={trigger}
      items={[
        canStop(agent) && {
          label: stopLabel(agent),
          icon: <Square aria-hidden />,
          disabled: act.isPending,
          onSelect: () => act.mutate('stop'),
        },
        {
          label: agent.session_count === 0 ? 'Start' : 'Restart',
          icon: agent.session_count === 0 ? <Play aria-hidden /> : <RotateCw aria-hidden />,
          disabled: act.isPending,
          onSelect: () => act.mutate(is_running ? 'restart' : 'start'),
        },
        {
          label: 'Output',
          icon: <FileText aria-hidden />,
          onSelect: () =>
            void navigate({
              to: '/agents/$agent_id/$tab',
              params: { agent_id: agent.id, tab: 'output' },
            }),
        },
        archive,
      ]}
    />
  );
}
