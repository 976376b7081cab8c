/** Facts about an agent that rows and cards share. */
import { Link } from '@tanstack/react-router';
import { GitBranch } from 'lucide-react';
import type { AgentRecord } from '../../api/queries.ts';
import type { AgentRequest } from '../../reviews/agent-request.ts';
import { Button, buttonClass } from '../../ui/button.tsx';
import { needsAttention } from '../../ui/status.tsx';
import { Ago, Clock, Duration, useNow } from '../../ui/time.tsx';
import { useAgentAct } from './actions.ts';
import { describeEnd } from './order.ts';

const QUIET_MS = 10 * 60_000;

/** The agent's pending request, if it has one. */
export function findPendingRequest(
  agent: AgentRecord,
  requests: readonly AgentRequest[],
): AgentRequest | undefined {
  return requests.findLast((request) => request.agent_id === agent.id && request.status === 'pending');
}

/** The first line of a request, as the agent wrote it. */
export function requestText(request: AgentRequest): string {
  if (!('tool_call' in request)) {
    return (request.message || (request.mode === 'form' ? 'fill in a form' : 'open a link'))
      .split('\n')[0]!
      .slice(0, 200);
  }
  const { title, kind } = request.tool_call;
  const text = typeof title === 'string' ? title : typeof kind === 'string' ? kind : 'Untitled request';
  return text.split('\n')[0]!.slice(0, 200);
}

export function NodeName({ agent }: { agent: AgentRecord }) {
  const remote = agent.node_id !== 'main';
  return (
    <span className={agent.stale_since ? 'text-needs' : undefined}>
      {remote ? `node:${agent.node_id}` : 'main'}
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
      <span className="truncate">{agent.worktree_branch}</span>
    </span>
  );
}

/** How long it has been running or quiet, or when it ended. */
export function Since({ agent }: { agent: AgentRecord }) {
  if (agent.status === 'running' && agent.started_at !== null) {
    return (
      <span>
        <Duration from={agent.started_at} to={null} />
        {agent.last_event_at !== null && !needsAttention(agent) && <Quiet since={agent.last_event_at} />}
      </span>
    );
  }
  return agent.ended_at === null ? <Ago at={agent.created_at} /> : <Ago at={agent.ended_at} />;
}

function Quiet({ since }: { since: string }) {
  const silent = useNow() - Date.parse(since);
  if (silent < QUIET_MS) return null;
  return <span className="ml-2 text-muted">quiet {Math.floor(silent / 60_000)}m</span>;
}

/** One line about the agent: its pending request, or how it ended. */
export function StatusLine({ agent, request }: { agent: AgentRecord; request: AgentRequest | undefined }) {
  if (request) {
    return (
      <span className="text-needs">
        asks: {requestText(request)} · <Ago at={request.created_at} suffix="" />
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

/** The button for the most likely next action. */
export function NextStep({ agent, request }: { agent: AgentRecord; request: AgentRequest | undefined }) {
  const act = useAgentAct(agent);
  if (request) {
    return (
      <Link
        to="/approvals"
        search={'tool_call' in request ? { review: request.id } : { elicitation: request.id }}
        className={buttonClass('primary')}
      >
        {'tool_call' in request ? 'Review' : 'Answer'}
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
