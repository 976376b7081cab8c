/** Shown at the end of a conversation if the agent needs attention: it failed, needs a sign-in, or its step asks something. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { escapeHidden } from '../../../../core/visible.ts';
import { open } from '../../../api/client.ts';
import { keys } from '../../../api/keys.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { CodeBlock } from '../../../prose/code.tsx';
import { agentState } from '../../../ui/agent-state.ts';
import { Button, buttonClass } from '../../../ui/button.tsx';
import { CardOrLink } from '../../../waiting/card-link.tsx';
import { LazyQuestionCard, LazySignInCard } from '../../../waiting/lazy.tsx';
import { keyOf } from '../../../waiting/queue.ts';
import { useWaiting } from '../../../waiting/use-waiting.ts';
import { useAgentAct } from '../../agents/actions.ts';
import { RestartsIn } from '../../agents/facts.tsx';
import { describeEnd } from '../../agents/order.ts';

const STDERR_BYTES = 8192;
const STDERR_LINES = 20;

export function AgentProblem({ agent }: { agent: AgentRecord }) {
  return (
    <>
      <Problem agent={agent} />
      {agent.pending_questions > 0 && <Questions agent={agent} />}
    </>
  );
}

function Problem({ agent }: { agent: AgentRecord }) {
  if (agent.sign_in_since !== null) {
    return (
      <CardOrLink id={agent.id}>
        <LazySignInCard agent={agent} open />
      </CardOrLink>
    );
  }
  if (agent.activity === 'starting') return null;
  if (agent.status === 'failed') return <FailedAgent agent={agent} />;
  if (agentState(agent) !== 'failed') return null;
  return (
    <p className="text-failed">
      The agent is running but does not accept prompts. See the error above and its output.
    </p>
  );
}

/** The questions of its steps. */
function Questions({ agent }: { agent: AgentRecord }) {
  const { open } = useWaiting();
  return open.map(
    (item) =>
      item.kind === 'question' &&
      item.agent_id === agent.id && (
        <CardOrLink key={keyOf(item)} id={item.id}>
          <LazyQuestionCard step={item.step} agent={agent} open />
        </CardOrLink>
      ),
  );
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
        <RestartsIn agent={agent} />
      </p>
      {stderr && <CodeBlock text={stderr} shown={escapeHidden(stderr)} language="stderr" />}
      <div className="flex flex-wrap gap-2">
        {/* Wider screens have it in the header. */}
        <Button
          variant="primary"
          busy={act.isPending}
          onClick={() => act.mutate('start')}
          className="md:hidden"
        >
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
