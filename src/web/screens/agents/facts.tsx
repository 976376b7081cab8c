/** Facts about an agent that rows and cards share. */
import { Link } from '@tanstack/react-router';
import { GitBranch } from 'lucide-react';
import { escapeHidden } from '../../../core/visible.ts';
import type { AgentRecord } from '../../api/queries.ts';
import { Button, buttonClass } from '../../ui/button.tsx';
import { Ago, Clock, Duration } from '../../ui/time.tsx';
import { linkNames, type WaitingItem, waitingText } from '../../waiting/queue.ts';
import { useAgentAct } from './actions.ts';
import { describeEnd, folderOf, lastPart, shortBranch } from './order.ts';

/** Where it works: its node, unless that is the main node, and its repository or folder. */
export function Place({ agent }: { agent: AgentRecord }) {
  const folder = folderOf(agent);
  const is_remote = agent.node_id !== 'main';
  return (
    <span>
      {is_remote && <NodeName agent={agent} />}
      {is_remote && folder !== null && ' · '}
      {folder !== null && <span title={escapeHidden(folder)}>{escapeHidden(lastPart(folder))}</span>}
    </span>
  );
}

function NodeName({ agent }: { agent: AgentRecord }) {
  return (
    <span className={agent.stale_since ? 'text-needs' : undefined}>
      {`node:${agent.node_id}`}
      {agent.stale_since && (
        <>
          {' unreachable since '}
          <Clock at={agent.stale_since} />
        </>
      )}
    </span>
  );
}

export function Branch({ agent }: { agent: AgentRecord }) {
  if (agent.worktree_branch === null) return null;
  return (
    <span className="inline-flex min-w-0 max-w-full items-center gap-1" title={agent.worktree_branch}>
      <GitBranch aria-label="branch" className="size-3.5 shrink-0" />
      <span className="truncate">{shortBranch(agent.worktree_branch)}</span>
    </span>
  );
}

/** How long it has been running, or when it ended. */
export function Since({ agent }: { agent: AgentRecord }) {
  if (agent.status === 'running' && agent.started_at !== null) {
    return (
      <span>
        <Duration from={agent.started_at} to={null} />
      </span>
    );
  }
  return agent.ended_at === null ? <Ago at={agent.created_at} /> : <Ago at={agent.ended_at} />;
}

/** One line about the agent: what it asks, or how it ended. */
export function StatusLine({ agent, item }: { agent: AgentRecord; item: WaitingItem | undefined }) {
  if (item) {
    return (
      <span className="text-needs">
        asks: {escapeHidden(waitingText(item))} · <Ago at={item.since} suffix="" />
      </span>
    );
  }
  if (agent.activity === 'starting' && agent.status !== 'running')
    return <span className="text-muted">Starting…</span>;
  if (agent.pending)
    return <span className="text-muted">{agent.pending} pending: the node is unreachable</span>;
  if (agent.status === 'failed') return <span className="text-failed">{describeEnd(agent)}</span>;
  return null;
}

const answerLabels = { permission: 'Review', elicitation: 'Answer', question: 'Answer', sign_in: 'Sign in' };

/** The button for the most likely next action. */
export function NextStep({ agent, item }: { agent: AgentRecord; item: WaitingItem | undefined }) {
  const act = useAgentAct(agent);
  if (item) {
    return (
      <Link to="/approvals" search={{ [linkNames[item.kind]]: item.id }} className={buttonClass('primary')}>
        {answerLabels[item.kind]}
        <span className="sr-only"> {agent.name}</span>
      </Link>
    );
  }
  // Screen readers announce the agent with the button.
  const of = <span className="sr-only"> {agent.name}</span>;
  if (agent.status === 'running') {
    return (
      <Button busy={act.isPending} onClick={() => act.mutate('stop')}>
        {act.isPending ? 'Stopping…' : 'Stop'}
        {of}
      </Button>
    );
  }
  return (
    <>
      {agent.status === 'failed' && (
        <Link
          to="/agents/$agent_id/$tab"
          params={{ agent_id: agent.id, tab: 'output' }}
          className={buttonClass('quiet')}
        >
          Output
          {of}
        </Link>
      )}
      <Button busy={act.isPending} onClick={() => act.mutate('start')}>
        {act.isPending ? 'Starting…' : agent.session_count > 0 ? 'Restart' : 'Start'}
        {of}
      </Button>
    </>
  );
}
