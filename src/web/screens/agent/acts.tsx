/** What can be done to an agent from its own page: start and stop it, end its turn, and the menu of everything else. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Ellipsis, Play, RotateCw, Square, Tag, Terminal, Trash2, Unplug } from 'lucide-react';
import { useCallback, useEffect, useRef, useState } from 'react';
import { call, wordsOf } from '../../api/client.ts';
import { type AgentRecord, nodesQuery } from '../../api/queries.ts';
import { useSession } from '../../api/session.ts';
import { appearance } from '../../shell/appearance.ts';
import { Button, IconButton } from '../../ui/button.tsx';
import { copyText } from '../../ui/copy.tsx';
import { hasModifier, isTyping } from '../../ui/keys.ts';
import { Menu } from '../../ui/menu.tsx';
import { needsYou } from '../../ui/status.tsx';
import { tell } from '../../ui/toast.tsx';
import { useAgentAct } from '../agents/actions.ts';
import { ChangeAgent } from './change.tsx';
import { DeleteAgent } from './delete.tsx';
import { ForgetAgent } from './forget.tsx';

/** The second press has to come so soon. */
const TWICE_MS = 1_500;

export function Acts({ agent }: { agent: AgentRecord }) {
  const act = useAgentAct(agent);
  const turn = useStopTurn(agent);
  const [dialog, setDialog] = useState<'change' | 'delete' | 'forget' | null>(null);
  const forgettable = useForgettable(agent);
  const running = agent.status === 'running';
  const starting = agent.activity === 'starting' && agent.pending === null;
  const busy = act.isPending ? act.variables : null;
  const stop = useCallback(() => {
    if (turn.open) turn.stop();
    else if (running && !act.isPending) act.mutate('stop');
  }, [turn, running, act]);
  const once = useTwice(running, stop);
  return (
    <>
      {turn.open ? (
        <Button busy={turn.stopping} onClick={turn.stop} icon={<Square aria-hidden />} className="min-w-28">
          {turn.stopping ? 'Stopping…' : 'Stop turn'}
        </Button>
      ) : running ? (
        <Button busy={busy !== null} onClick={stop} icon={<Square aria-hidden />} className="min-w-28">
          {busy === 'restart' ? 'Restarting…' : busy === 'stop' ? 'Stopping…' : 'Stop'}
        </Button>
      ) : (
        <Button
          look="primary"
          busy={busy !== null || starting}
          onClick={() => act.mutate('start')}
          icon={<Play aria-hidden />}
          className="min-w-28"
        >
          {busy !== null || starting ? 'Starting…' : agent.session_count > 0 ? 'Restart' : 'Start'}
        </Button>
      )}
      <Menu
        trigger={<IconButton label="More" icon={<Ellipsis aria-hidden />} />}
        items={[
          turn.open && {
            label: 'Stop agent',
            icon: <Square />,
            onSelect: () => act.mutate('stop'),
            hint: 'Ends the process with everything that it started',
          },
          running && { label: 'Restart', icon: <RotateCw />, onSelect: () => act.mutate('restart') },
          { label: 'Name and labels', icon: <Tag />, onSelect: () => setDialog('change') },
          {
            label: 'Copy as a command',
            icon: <Terminal />,
            onSelect: () =>
              void copyText(`svc logs ${agent.id} --follow`).then(
                () => tell('Copied', `svc logs ${agent.id} --follow`),
                () => tell('Not allowed here', `svc logs ${agent.id} --follow`),
              ),
          },
          { label: 'Delete', icon: <Trash2 />, danger: true, onSelect: () => setDialog('delete') },
          forgettable && {
            label: 'Forget',
            icon: <Unplug />,
            danger: true,
            onSelect: () => setDialog('forget'),
            hint: 'For an agent whose machine is gone for good',
          },
        ]}
      />
      <span role="status" className="sr-only">
        {once && 'Press the full stop again to stop'}
      </span>
      {once && (
        <span aria-hidden className="text-muted text-sm">
          <kbd>.</kbd> again stops
        </span>
      )}
      {dialog === 'change' && <ChangeAgent agent={agent} onClose={() => setDialog(null)} />}
      {dialog === 'forget' && <ForgetAgent agent={agent} onClose={() => setDialog(null)} />}
      {dialog === 'delete' && <DeleteAgent agent={agent} onClose={() => setDialog(null)} />}
    </>
  );
}

/** Root alone forgets agents, and only where the node does not answer. */
function useForgettable({ node_id, stale_since }: AgentRecord): boolean {
  const { data: nodes = [] } = useQuery(nodesQuery);
  const root = useSession()?.user.role === 'root';
  const node = nodes.find(({ id }) => id === node_id);
  return root && (stale_since !== null || (node !== undefined && node.status !== 'connected'));
}

/** Ends the turn, not the agent. It is stopping until the agent has said that it has. */
function useStopTurn(agent: AgentRecord) {
  const queries = useQueryClient();
  const open =
    agent.protocol === 'acp' &&
    agent.status === 'running' &&
    (agent.activity === 'working' || agent.activity === 'quiet' || needsYou(agent));
  const cancel = useMutation({
    mutationFn: () => call('cancelTurn', { params: { agent_id: agent.id } }),
    onSuccess: (record) => queries.setQueryData(['agent', record.id], record),
    onError: (error) => tell(agent.name, wordsOf(error)),
  });
  const { mutate, reset, isPending, isSuccess } = cancel;
  useEffect(() => {
    if (!open) reset();
  }, [open, reset]);
  return { open, stopping: isPending || isSuccess, stop: mutate as () => void };
}

/** `.` and once more `.`: the first press only says what the second will do. */
function useTwice(enabled: boolean, act: () => void): boolean {
  const [once, setOnce] = useState(false);
  const latest = useRef(act);
  latest.current = act;
  const first = useRef(0);
  useEffect(() => {
    if (!enabled) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== '.' || event.repeat || hasModifier(event) || isTyping(event)) return;
      if (!appearance().shortcuts) return;
      clearTimeout(timer);
      const second = first.current > 0 && event.timeStamp - first.current < TWICE_MS;
      first.current = second ? 0 : event.timeStamp;
      setOnce(!second);
      if (second) latest.current();
      else timer = setTimeout(() => setOnce(false), TWICE_MS);
    };
    document.addEventListener('keydown', onKey);
    return () => {
      clearTimeout(timer);
      document.removeEventListener('keydown', onKey);
    };
  }, [enabled]);
  return once;
}
