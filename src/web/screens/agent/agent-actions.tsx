/** The actions on an agent's page: start, stop, cancel the turn, and a menu with the rest. */
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { Ellipsis, Play, RotateCw, Square, Tag, Terminal, Trash2, Unplug } from 'lucide-react';
import { type MouseEventHandler, useEffect, useRef, useState } from 'react';
import { type AgentRecord, nodesQuery } from '../../api/queries.ts';
import { useSession } from '../../api/session.ts';
import { appearance } from '../../shell/appearance.ts';
import { canStop, stopLabel } from '../../ui/agent-state.ts';
import { Button, buttonClass, IconButton } from '../../ui/button.tsx';
import { copyText } from '../../ui/copy.tsx';
import { hasModifier, isTyping } from '../../ui/keys.ts';
import { Menu } from '../../ui/menu.tsx';
import { useReplacedGuard } from '../../ui/replaced.ts';
import { showToast } from '../../ui/toast.tsx';
import { useAgentAct } from '../agents/actions.ts';
import { useArchive } from '../agents/archive.tsx';
import { ChangeAgent } from './change.tsx';
import { ForgetAgent } from './forget.tsx';
import { useCancelTurn } from './turn.ts';

/** The second key press must follow within this time. */
const DOUBLE_PRESS_MS = 1_500;

/** `changes`: the number of changed files in its folder. */
export function AgentActions({
  agent,
  changes,
  onDelete,
}: {
  agent: AgentRecord;
  changes: number;
  onDelete: () => void;
}) {
  const act = useAgentAct(agent);
  const archive = useArchive(agent);
  const turn = useCancelTurn(agent);
  const [dialog, setDialog] = useState<'change' | 'forget' | null>(null);
  const forgettable = useForgettable(agent);
  const running = agent.status === 'running';
  const is_acp = agent.protocol === 'acp';
  const offer = turn.open ? 'cancel the turn' : running && !is_acp ? 'stop the agent' : null;
  const offers_again = useDoublePress(offer, () => {
    if (turn.open) turn.cancel();
    else if (!act.isPending) act.mutate('stop');
  });
  return (
    <>
      <MainAction agent={agent} changes={changes} turn={turn} act={act} />
      <Menu
        trigger={<IconButton label="More" icon={<Ellipsis aria-hidden />} />}
        items={[
          canStop(agent) &&
            (is_acp || !running) && {
              label: stopLabel(agent),
              icon: <Square />,
              onSelect: () => act.mutate('stop'),
              ...(running && { hint: 'Ends the process and everything it started' }),
            },
          running && { label: 'Restart', icon: <RotateCw />, onSelect: () => act.mutate('restart') },
          { label: 'Edit name and labels', icon: <Tag />, onSelect: () => setDialog('change') },
          {
            label: 'Copy log command',
            icon: <Terminal />,
            onSelect: () => void copyLogCommand(agent),
          },
          archive,
          { label: 'Delete', icon: <Trash2 />, danger: true, onSelect: onDelete },
          forgettable && {
            label: 'Forget',
            icon: <Unplug />,
            danger: true,
            onSelect: () => setDialog('forget'),
            hint: 'For an agent whose machine is permanently gone',
          },
        ]}
      />
      <PressAgain offer={offers_again ? offer : null} />
      {dialog === 'change' && <ChangeAgent agent={agent} onClose={() => setDialog(null)} />}
      {dialog === 'forget' && <ForgetAgent agent={agent} onClose={() => setDialog(null)} />}
    </>
  );
}

const progress = { start: 'Starting…', stop: 'Stopping…', restart: 'Restarting…' };

/**
 * One action at a time. *Stop* never takes the place of *Cancel turn*: a click just after the end of a turn would stop the
 * agent, so agents with turns have it in the menu.
 */
function MainAction({
  agent,
  changes,
  turn,
  act,
}: {
  agent: AgentRecord;
  changes: number;
  turn: ReturnType<typeof useCancelTurn>;
  act: ReturnType<typeof useAgentAct>;
}) {
  const busy = act.isPending ? act.variables : null;
  const is_running = agent.status === 'running';
  const action = turn.open ? 'cancel' : is_running ? 'stop' : 'start';
  const guard = useReplacedGuard(action, turn.open ? turn.cancelling : busy !== null);
  if (turn.open)
    return (
      <Button
        busy={turn.cancelling}
        onClick={guard(turn.cancel)}
        icon={<Square aria-hidden />}
        className="min-w-28"
      >
        {turn.cancelling ? 'Cancelling…' : 'Cancel turn'}
      </Button>
    );
  if (!is_running)
    return (
      <StartButtons
        agent={agent}
        reviewable={agent.status === 'completed' && changes > 0}
        busy={busy !== null || (agent.activity === 'starting' && agent.pending === null)}
        onStart={guard(() => act.mutate('start'))}
      />
    );
  if (agent.protocol !== 'acp' || busy !== null)
    return (
      <Button
        busy={busy !== null}
        onClick={guard(() => act.mutate('stop'))}
        icon={<Square aria-hidden />}
        className="min-w-28"
      >
        {busy === null ? 'Stop' : progress[busy]}
      </Button>
    );
  return agent.activity === 'idle' && changes > 0 && <ReviewChanges agent={agent} />;
}

/** Not on the page that it opens. */
function ReviewChanges({ agent }: { agent: AgentRecord }) {
  const { tab } = useParams({ strict: false });
  if (tab === 'changes') return null;
  return (
    <Link
      to="/agents/$agent_id/$tab"
      params={{ agent_id: agent.id, tab: 'changes' }}
      search={{}}
      className={buttonClass('primary')}
    >
      Review changes
    </Link>
  );
}

function PressAgain({ offer }: { offer: string | null }) {
  return (
    <>
      <span role="status" className="sr-only">
        {offer && `Press . again to ${offer}`}
      </span>
      {offer && (
        <span aria-hidden className="text-muted text-sm">
          Press <kbd>.</kbd> again to {offer}
        </span>
      )}
    </>
  );
}

/** Of an agent that is not running. After success, its changes come before another start. */
function StartButtons({
  agent,
  reviewable,
  busy,
  onStart,
}: {
  agent: AgentRecord;
  reviewable: boolean;
  busy: boolean;
  onStart: MouseEventHandler;
}) {
  return (
    <>
      {reviewable && <ReviewChanges agent={agent} />}
      <Button
        variant={reviewable ? 'plain' : 'primary'}
        busy={busy}
        onClick={onStart}
        icon={<Play aria-hidden />}
        className="min-w-28"
      >
        {busy ? 'Starting…' : agent.session_count > 0 ? 'Restart' : 'Start'}
      </Button>
    </>
  );
}

async function copyLogCommand({ id }: AgentRecord): Promise<void> {
  const command = `svc logs ${id} --follow`;
  const copied = await copyText(command).then(
    () => true,
    () => false,
  );
  showToast(copied ? 'Copied' : 'The browser blocked copying. Copy this command:', command);
}

/** Only root may forget agents, and only if their node is not connected. */
function useForgettable({ node_id, stale_since }: AgentRecord): boolean {
  const { data: nodes = [] } = useQuery(nodesQuery);
  const root = useSession()?.user.role === 'root';
  const node = nodes.find(({ id }) => id === node_id);
  return root && (stale_since !== null || (node !== undefined && node.status !== 'connected'));
}

/**
 * Carries out the offered action after `.` is pressed twice; the first press only shows a hint. Both presses must see the
 * same offer. Returns whether the hint is shown.
 */
function useDoublePress(offer: string | null, act: () => void): boolean {
  const [once, setOnce] = useState(false);
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    if (offer === null) return;
    let first = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== '.' || event.repeat || hasModifier(event) || isTyping(event)) return;
      if (!appearance().shortcuts) return;
      clearTimeout(timer);
      const second = first > 0 && event.timeStamp - first < DOUBLE_PRESS_MS;
      first = second ? 0 : event.timeStamp;
      setOnce(!second);
      if (second) latest.current();
      else timer = setTimeout(() => setOnce(false), DOUBLE_PRESS_MS);
    };
    document.addEventListener('keydown', onKey);
    return () => {
      clearTimeout(timer);
      setOnce(false);
      document.removeEventListener('keydown', onKey);
    };
  }, [offer]);
  return once;
}
