import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { errorMessage } from '../../api/client.ts';
import { signOut } from '../../api/sign-out.ts';
import { Button } from '../../ui/button.tsx';
import { showToast } from '../../ui/toast.tsx';

export function SignOut({ icon }: { icon?: ReactNode }) {
  const leave = useMutation({
    mutationFn: signOut,
    // The button's page is no longer shown.
    onError: (error) =>
      showToast('Signed out in this browser only; the token is still valid', errorMessage(error)),
  });
  return (
    <Button icon={icon} busy={leave.isPending} onClick={() => leave.mutate()}>
      Sign out
    </Button>
  );
}
