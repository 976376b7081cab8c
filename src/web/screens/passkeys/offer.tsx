/** Offers a passkey after the first sign-in with a password. */
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { Button } from '../../ui/button.tsx';
import { deviceName } from '../../ui/device-name.ts';

export function Offer({ onDone }: { onDone: () => void }) {
  const [message, setMessage] = useState<string | null>(null);
  const add = useMutation({
    mutationFn: async () => {
      const { addPasskey } = await import('./ceremony.ts');
      return addPasskey({ name: deviceName(navigator.userAgent) });
    },
    onMutate: () => setMessage(null),
    onSuccess: onDone,
    onError: async (error) => setMessage((await import('./ceremony.ts')).passkeyMessage(error)),
  });
  return (
    <div className="flex flex-col gap-3">
      <p>
        Next time, sign in with your fingerprint, your face or the PIN of this device. You can still use your
        password.
      </p>
      {message && (
        <p role="alert" className="text-failed">
          {message}
        </p>
      )}
      <div className="flex flex-wrap gap-2">
        <Button variant="primary" autoFocus busy={add.isPending} onClick={() => add.mutate()}>
          Add a passkey
        </Button>
        <Button onClick={onDone}>Later</Button>
      </div>
    </div>
  );
}
