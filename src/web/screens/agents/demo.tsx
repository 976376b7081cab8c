/** Starts the demo agent with a first prompt. It needs no API key and no account. */
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useActKey } from '../../api/act-key.ts';
import { errorMessage } from '../../api/client.ts';
import { startDemo } from '../../shell/start-agent.ts';
import { Button } from '../../ui/button.tsx';
import { showToast } from '../../ui/toast.tsx';

export function StartDemo() {
  const navigate = useNavigate();
  const keyOf = useActKey();
  const start = useMutation({
    mutationFn: () => startDemo(keyOf),
    onSuccess: (agent_id) => navigate({ to: '/agents/$agent_id', params: { agent_id } }),
    onError: (error) => showToast('The demo agent', errorMessage(error)),
  });
  return (
    <Button variant="primary" busy={start.isPending} onClick={() => start.mutate()}>
      Start demo
    </Button>
  );
}
