/** Something alive on the screen, without a key or an account: the demo agent, with a first prompt. */
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { wordsOf } from '../../api/client.ts';
import { startDemo } from '../../shell/start-agent.ts';
import { Button } from '../../ui/button.tsx';
import { tell } from '../../ui/toast.tsx';

export function StartDemo({ look }: { look?: 'primary' }) {
  const navigate = useNavigate();
  const start = useMutation({
    mutationFn: startDemo,
    onSuccess: (agent_id) => navigate({ to: '/agents/$agent_id', params: { agent_id } }),
    onError: (error) => tell('The demo agent', wordsOf(error)),
  });
  return (
    <Button {...(look && { look })} busy={start.isPending} onClick={() => start.mutate()}>
      Start demo
    </Button>
  );
}
