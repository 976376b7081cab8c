/** The actions on an agent's page: start, stop, cancel the turn, and a menu with the rest. */
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { Ellipsis, Play, RotateCw, Square, Tag, Terminal, Trash2, Unplug } from 'lucide-react';
import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import { type AgentRecord, nodesQuery } from '../../api/queries.ts';
import { useSession } from '../../api/session.ts';
import { appearance } from '../../shell/appearance.ts';
import { canStop, stopLabel } from '../../ui/agent-state.ts';
import { Button, type ButtonProps, buttonClass, IconButton } from '../../ui/button.tsx';
import { copyText } from '../../ui/copy.tsx';
import { hasModifier, isTyping } from '../../ui/keys.ts';
import { Menu } from '../../ui/menu.tsx';
import { useReplacedGuard } from '../../ui/replaced.ts';
import { focusHeading } from '../../ui/screen.tsx';
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
 * One action at a time, by one button (`key`), which keeps the focus when its action changes. *Stop* never takes the place of
 * *Cancel turn*: a click just after the end of a turn would stop the agent, so agents with turns have it in the menu.
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
      <MainButton
        key="main"
        busy={turn.cancelling}
        onClick={guard(turn.cancel)}
        icon={<Square aria-hidden />}
      >
        {turn.cancelling ? 'Cancelling…' : 'Cancel turn'}
      </MainButton>
    );
  if (!is_running) {
    const starts = busy !== null || (agent.activity === 'starting' && agent.pending === null);
    // After success, its changes come before another start.
    const reviewable = agent.status === 'completed' && changes > 0;
    return (
      <>
        {reviewable && <ReviewChanges agent={agent} />}
        <MainButton
          key="main"
          variant={reviewable ? 'plain' : 'primary'}
          busy={starts}
          onClick={guard(() => act.mutate('start'))}
          icon={<Play aria-hidden />}
        >
          {starts ? 'Starting…' : agent.session_count > 0 ? 'Restart' : 'Start'}
        </MainButton>
      </>
    );
  }
  if (agent.protocol !== 'acp' || busy !== null)
    return (
      <MainButton
        key="main"
        busy={busy !== null}
        onClick={guard(() => act.mutate('stop'))}
        icon={<Square aria-hidden />}
      >
        {busy === null ? 'Stop' : progress[busy]}
      </MainButton>
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

/** If it goes while it has the focus, for example after the turn was cancelled, the heading beside it gets the focus. */
function MainButton(props: ButtonProps) {
  const ref = useRef<HTMLButtonElement>(null);
  // React runs this before it removes the button.
  useLayoutEffect(() => {
    const button = ref.current;
    return () => {
      if (document.activeElement === button) focusHeading();
    };
  }, []);
  return <Button ref={ref} {...props} className="min-w-28" />;
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
