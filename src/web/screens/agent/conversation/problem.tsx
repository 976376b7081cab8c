/** Shown at the end of a conversation if the agent needs attention: it failed, or needs a sign-in. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { KeyRound } from 'lucide-react';
import { escapeHidden } from '../../../../core/visible.ts';
import { call, open } from '../../../api/client.ts';
import { keys } from '../../../api/keys.ts';
import { type AgentRecord, agentConfigQuery, presetsQuery } from '../../../api/queries.ts';
import { CodeBlock } from '../../../prose/code.tsx';
import { Button, buttonClass } from '../../../ui/button.tsx';
import { ActionError } from '../../../ui/states.tsx';
import { needsAttention } from '../../../ui/status.tsx';
import { useAgentAct } from '../../agents/actions.ts';
import { describeEnd } from '../../agents/order.ts';

const STDERR_BYTES = 8192;
const STDERR_LINES = 20;

export function AgentProblem({ agent }: { agent: AgentRecord }) {
  if (agent.activity === 'starting') return null;
  if (agent.status === 'failed') return <FailedAgent agent={agent} />;
  const needs_setup = agent.status === 'running' && agent.activity === 'needs_you' && !needsAttention(agent);
  return needs_setup ? <SignIn agent={agent} /> : null;
}

/** Why the agent failed, with the end of its stderr. */
function FailedAgent({ agent }: { agent: AgentRecord }) {
  const act = useAgentAct(agent);
  const { data: stderr } = useQuery({
    queryKey: keys.stderr(agent.id, agent.session_id),
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
        {agent.name} failed{describeEnd(agent) && `: ${describeEnd(agent)}`}
      </p>
      {stderr && <CodeBlock text={escapeHidden(stderr)} language="stderr" />}
      <div className="flex flex-wrap gap-2">
        <Button variant="primary" busy={act.isPending} onClick={() => act.mutate('start')}>
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

/** The agent runs but accepts no prompts until the user has signed in. */
function SignIn({ agent }: { agent: AgentRecord }) {
  const queries = useQueryClient();
  const read = useQuery({ ...agentConfigQuery(agent.id), staleTime: 0 });
  const { data: presets = [] } = useQuery(presetsQuery(agent.node_id));
  const sign_in = useMutation({
    mutationFn: (method_id: string) =>
      call('authenticateAgent', { params: { agent_id: agent.id }, body: { method_id } }),
    onSuccess: (config) => queries.setQueryData(keys.agent_config(agent.id), config),
  });
  if (read.data?.phase === 'failed') {
    return (
      <p className="text-failed">
        The agent is running but does not accept prompts. See the error above and its output.
      </p>
    );
  }
  if (read.data?.phase !== 'auth_required') return null;
  const hint = presets.find(({ id }) => id === agent.preset)?.sign_in_hint;
  const { auth_methods: methods } = read.data;
  return (
    <section aria-label="Sign in" className="flex flex-col gap-2 rounded-lg border border-needs/70 p-3">
      <p className="inline-flex items-center gap-1.5 font-medium text-needs">
        <KeyRound aria-hidden className="size-4" /> Sign in to use {agent.name}
      </p>
      {methods.length > 0 && (
        <ul className="flex flex-col gap-2">
          {methods.map((method) => (
            <li key={method.id} className="flex flex-wrap items-center gap-2">
              <Button
                busy={sign_in.isPending && sign_in.variables === method.id}
                disabled={sign_in.isPending}
                onClick={() => sign_in.mutate(method.id)}
              >
                <bdi>{escapeHidden(method.name)}</bdi>
              </Button>
              {method.description !== null && (
                <span className="min-w-0 break-words text-muted">{escapeHidden(method.description)}</span>
              )}
              {method.type === 'terminal' && <span className="text-muted">in a terminal on its node</span>}
            </li>
          ))}
        </ul>
      )}
      {hint && (
        <p>
          Or sign in on {agent.node_id === 'main' ? 'this machine' : `node:${agent.node_id}`}, as the user
          that runs agents:{' '}
          <code className="break-words rounded bg-surface px-1 font-mono text-sm">{hint}</code>
        </p>
      )}
      <ActionError error={sign_in.error} />
    </section>
  );
}
