/** What stands at the end of a conversation while the agent is not simply at work: it starts, it failed, it wants a sign-in. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { KeyRound } from 'lucide-react';
import { useState } from 'react';
import type { View } from '../../../../acp/transcript/transcript.ts';
import { visible } from '../../../../core/visible.ts';
import { call, open } from '../../../api/client.ts';
import { type AgentRecord, agentConfigQuery, presetsQuery } from '../../../api/queries.ts';
import { CodeBlock } from '../../../prose/code.tsx';
import { Button, buttonClass } from '../../../ui/button.tsx';
import { Refused } from '../../../ui/states.tsx';
import { needsYou } from '../../../ui/status.tsx';
import { Ago } from '../../../ui/time.tsx';
import { useAgentAct } from '../../agents/actions.ts';
import { endOf, programOf } from '../../agents/order.ts';
import { Took } from './took.tsx';

const STDERR_BYTES = 8192;
const STDERR_LINES = 20;

/** After the last item: what stands in the way. */
export function Trouble({ agent }: { agent: AgentRecord }) {
  if (isStarting(agent)) return null;
  if (agent.status === 'failed') return <Broken agent={agent} />;
  const unready = agent.status === 'running' && agent.activity === 'needs_you' && !needsYou(agent);
  return unready ? <Unready agent={agent} /> : null;
}

/** What it is at. Below what scrolls, so that nothing moves when it changes. */
export function NowLine({ agent, view }: { agent: AgentRecord; view: View }) {
  const turn = view.turns.at(-1);
  return (
    <div className="mx-auto h-6 w-full max-w-4xl shrink-0 px-3 text-muted text-sm md:px-4">
      {isStarting(agent) ? (
        <p role="status">
          Starting {programOf(agent)}… {agent.started_at && <Ago at={agent.started_at} suffix="" />}
        </p>
      ) : (
        view.working &&
        turn && (
          <p>
            {view.stopping ? 'Stopping… ' : needsYou(agent) ? 'Waiting for an answer · ' : 'Working… '}
            <Took from={turn.started_ts} to={null} />
          </p>
        )
      )}
    </div>
  );
}

function isStarting({ activity }: AgentRecord): boolean {
  return activity === 'starting';
}

/** Why it failed, and what it said last on stderr. */
function Broken({ agent }: { agent: AgentRecord }) {
  const act = useAgentAct(agent);
  const { data: said } = useQuery({
    queryKey: ['stderr', agent.id, agent.session_id],
    queryFn: async () => {
      const query = { stream: 'stderr' as const, tail: STDERR_BYTES };
      const text = await (await open('getOutput', { params: { agent_id: agent.id }, query })).text();
      return text.trimEnd().split('\n').slice(-STDERR_LINES).join('\n');
    },
    enabled: agent.session_id !== null,
  });
  return (
    <section aria-label="Failure" className="flex flex-col gap-2 rounded-lg border border-failed/60 p-3">
      <p className="font-medium text-failed">
        {agent.name} failed{endOf(agent) && `: ${endOf(agent)}`}
      </p>
      {said && <CodeBlock text={visible(said)} language="stderr" />}
      <div className="flex flex-wrap gap-2">
        <Button look="primary" busy={act.isPending} onClick={() => act.mutate('start')}>
          {act.isPending ? 'Starting…' : 'Restart'}
        </Button>
        <Link
          to="/agents/$agent_id/$tab"
          params={{ agent_id: agent.id, tab: 'output' }}
          search={{}}
          className={buttonClass()}
        >
          Open output
        </Link>
      </div>
    </section>
  );
}

/** It runs, and cannot be talked to before somebody has done something. */
function Unready({ agent }: { agent: AgentRecord }) {
  const queries = useQueryClient();
  const read = useQuery({ ...agentConfigQuery(agent.id), staleTime: 0 });
  const { data: presets = [] } = useQuery(presetsQuery(agent.node_id));
  const [method_id, setMethod] = useState<string | null>(null);
  const sign = useMutation({
    mutationFn: (method_id: string) =>
      call('authenticateAgent', { params: { agent_id: agent.id }, body: { method_id } }),
    onSuccess: (config) => queries.setQueryData(['agent-config', agent.id], config),
  });
  if (read.data?.phase === 'failed') {
    return <p className="text-failed">The agent runs, and cannot be talked to: see above, and its output.</p>;
  }
  if (read.data?.phase !== 'auth_required') return null;
  const hint = presets.find(({ id }) => id === agent.preset)?.sign_in_hint;
  const { auth_methods: methods } = read.data;
  return (
    <section aria-label="Sign in" className="flex flex-col gap-2 rounded-lg border border-needs/70 p-3">
      <p className="inline-flex items-center gap-1.5 font-medium text-needs">
        <KeyRound aria-hidden className="size-4" /> {agent.name} wants somebody to sign in first
      </p>
      {methods.length > 0 && (
        <ul className="flex flex-col gap-2">
          {methods.map((method) => (
            <li key={method.id} className="flex flex-wrap items-center gap-2">
              <Button
                busy={sign.isPending && method_id === method.id}
                disabled={sign.isPending}
                onClick={() => {
                  setMethod(method.id);
                  sign.mutate(method.id);
                }}
              >
                <bdi>{visible(method.name)}</bdi>
              </Button>
              {method.description !== null && (
                <span className="min-w-0 break-words text-muted">{visible(method.description)}</span>
              )}
              {method.type === 'terminal' && <span className="text-muted">in a terminal on its node</span>}
            </li>
          ))}
        </ul>
      )}
      {hint && (
        <p>
          Or, on {agent.node_id === 'main' ? 'this machine' : `node:${agent.node_id}`}, as the user that
          agents run as: <code className="break-words rounded bg-surface px-1 font-mono text-sm">{hint}</code>
        </p>
      )}
      <Refused error={sign.error} />
    </section>
  );
}
