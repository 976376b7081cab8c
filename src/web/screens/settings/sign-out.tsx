import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { wordsOf } from '../../api/client.ts';
import { signOut } from '../../api/sign-out.ts';
import { Button } from '../../ui/button.tsx';
import { tell } from '../../ui/toast.tsx';

export function SignOut({ icon }: { icon?: ReactNode }) {
  const leave = useMutation({
    mutationFn: signOut,
    // The page of this button is gone by now.
    onError: (error) => tell('Signed out here only', wordsOf(error)),
  });
  return (
    <Button icon={icon} busy={leave.isPending} onClick={() => leave.mutate()}>
      Sign out
    </Button>
  );
}
