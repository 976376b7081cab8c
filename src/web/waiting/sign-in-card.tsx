/** An agent that runs but accepts no prompts until the user has signed in, with the methods that it offers. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Check, KeyRound } from 'lucide-react';
import { memo, useId } from 'react';
import { escapeHidden } from '../../core/visible.ts';
import { call } from '../api/client.ts';
import { keys } from '../api/keys.ts';
import { type AgentRecord, agentConfigQuery, presetsQuery } from '../api/queries.ts';
import { Button } from '../ui/button.tsx';
import { useOnline } from '../ui/online.ts';
import { ActionError } from '../ui/states.tsx';
import { Ago } from '../ui/time.tsx';
import { CardBar, CardBody, CardFrame } from './card-frame.tsx';

export interface SignInCardProps {
  agent: AgentRecord;
  open: boolean;
  /** Links to the agent, if the card is not on its page. */
  named?: boolean | undefined;
  className?: string;
}

export const SignInCard = memo(function SignInCard({ agent, open, named, className }: SignInCardProps) {
  const id = useId();
  const queries = useQueryClient();
  const sign_in = useMutation({
    mutationFn: (method_id: string) =>
      call('authenticateAgent', { params: { agent_id: agent.id }, body: { method_id } }),
    onSuccess: (config) => queries.setQueryData(keys.agent_config(agent.id, agent.session_id), config),
  });
  const done = sign_in.isSuccess ? 'Signed in' : 'Sign-in no longer needed';
  return (
    <CardFrame
      card={agent.id}
      open={open}
      answered={sign_in.isPending || sign_in.isSuccess}
      {...(open ? { 'aria-labelledby': id } : { 'aria-label': `${agent.name}: ${done}` })}
      {...(className && { className })}
    >
      {open ? (
        <>
          <CardBody>
            <header className="flex flex-wrap items-center gap-x-2 text-sm">
              <span className="inline-flex items-center gap-1 font-medium text-needs">
                <KeyRound aria-hidden className="size-3.5" /> Sign in
              </span>
              {named && <AgentLink agent={agent} />}
              {agent.sign_in_since !== null && (
                <span className="ml-auto text-muted">
                  needed for <Ago at={agent.sign_in_since} suffix="" />
                </span>
              )}
            </header>
            <p id={id} className="break-words font-medium">
              Sign in to use {escapeHidden(agent.name)}
            </p>
          </CardBody>
          <CardBar>
            <Methods agent={agent} sign_in={sign_in} />
          </CardBar>
        </>
      ) : (
        <>
          <Check aria-hidden className="size-3.5 shrink-0 text-muted" />
          {named && <AgentLink agent={agent} />}
          <span>{done}</span>
        </>
      )}
    </CardFrame>
  );
});

interface SigningIn {
  isPending: boolean;
  variables: string | undefined;
  error: unknown;
  mutate: (method_id: string) => void;
}

function Methods({ agent, sign_in }: { agent: AgentRecord; sign_in: SigningIn }) {
  const online = useOnline();
  const read = useQuery({ ...agentConfigQuery(agent), staleTime: 0 });
  const { data: presets = [] } = useQuery(presetsQuery(agent.node_id));
  const hint = presets.find(({ id }) => id === agent.preset)?.sign_in_hint;
  const methods = read.data?.auth_methods ?? [];
  return (
    <>
      {methods.length > 0 && (
        <ul className="flex flex-col gap-2">
          {methods.map((method) => (
            <li key={method.id} className="flex flex-wrap items-center gap-2">
              <Button
                busy={sign_in.isPending && sign_in.variables === method.id}
                disabled={sign_in.isPending || !online}
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
      {!online && <p className="text-muted">You are offline. Sign in when you are back online.</p>}
      <ActionError error={sign_in.error} />
    </>
  );
}

function AgentLink({ agent }: { agent: AgentRecord }) {
  return (
    <Link
      to="/agents/$agent_id"
      params={{ agent_id: agent.id }}
      className="tap inline-flex min-w-0 items-center font-medium hover:underline"
    >
      <span className="break-all">{escapeHidden(agent.name)}</span>
    </Link>
  );
}
