/** Changes a setting of an agent. Its new value is shown at once, until the agent reports one. */
import { useMutation } from '@tanstack/react-query';
import { call, errorMessage } from '../../../api/client.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { showToast } from '../../../ui/toast.tsx';
import type { Setting } from './choices.ts';

type Value = string | boolean;

export function useSetting(
  agent: AgentRecord,
  { option_id, name, control }: Setting,
): { value: Value; disabled: boolean; set: (value: Value) => void } {
  const change = useMutation({
    mutationFn: (value: Value) =>
      call('setAgentConfig', {
        params: { agent_id: agent.id },
        body: option_id === null ? { mode_id: String(value) } : { options: { [option_id]: value } },
      }),
    onError: (error) => showToast(`${name} was not changed`, errorMessage(error)),
  });
  const reported = control.type === 'choice' ? control.value : control.on;
  return {
    value: change.isPending ? change.variables : reported,
    disabled: agent.status !== 'running' || change.isPending,
    set: change.mutate,
  };
}
