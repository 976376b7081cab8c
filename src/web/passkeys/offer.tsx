/** After the first password: a passkey for the next time, with one click, or not now. */
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { Button } from '../ui/button.tsx';
import { deviceName } from '../ui/device-name.ts';

export function Offer({ onDone }: { onDone: () => void }) {
  const [said, setSaid] = useState<string | null>(null);
  const add = useMutation({
    mutationFn: async () => {
      const { addPasskey } = await import('./ceremony.ts');
      return addPasskey({ name: deviceName(navigator.userAgent) });
    },
    onMutate: () => setSaid(null),
    onSuccess: onDone,
    onError: async (error) => setSaid((await import('./ceremony.ts')).passkeyWords(error)),
  });
  return (
    <div className="flex flex-col gap-3">
      <p>
        Next time, sign in with your fingerprint, your face or the PIN of this device. The password stays good
        as well.
      </p>
      {said && (
        <p role="alert" className="text-failed">
          {said}
        </p>
      )}
      <div className="flex flex-wrap gap-2">
        <Button look="primary" autoFocus busy={add.isPending} onClick={() => add.mutate()}>
          Add a passkey
        </Button>
        <Button onClick={onDone}>Later</Button>
      </div>
    </div>
  );
}
