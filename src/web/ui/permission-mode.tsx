/** Whether an agent asks before it acts: the configured mode, and the observed behavior. */
import { Zap } from 'lucide-react';
import type { AgentRecord } from '../api/queries.ts';
import type { Choice } from './select.tsx';

export const permissionChoices: readonly Choice[] = [
  { value: 'ask', label: 'Ask before acting' },
  { value: 'agent', label: 'Act on its own' },
];

/** A mark for lists, where only the exception matters. */
export function ActsOnItsOwn({ agent }: { agent: Pick<AgentRecord, 'asks'> }) {
  if (agent.asks !== 'acts') return null;
  return (
    <span title="Acts on its own" className="shrink-0 text-warning max-md:hidden">
      <Zap aria-label="acts on its own" className="size-3.5" />
    </span>
  );
}

/** Renders nothing for an agent that has not acted yet. */
export function ObservedPermissionMode({ agent }: { agent: Pick<AgentRecord, 'asks'> }) {
  if (agent.asks === 'unknown') return null;
  return agent.asks === 'asks' ? (
    <span className="whitespace-nowrap text-muted">asks before acting</span>
  ) : (
    <span className="whitespace-nowrap text-warning">acts on its own</span>
  );
}
