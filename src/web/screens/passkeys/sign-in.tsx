/**
 * Signing in with a passkey: the button below the form, and the browser's autofill in it. Imports only what the sign-in page
 * loads anyway.
 */
import { useMutation } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { call } from '../../api/client.ts';
import { session } from '../../api/session.ts';
import { Button } from '../../ui/button.tsx';
import { type Place, pageLocation, unavailableReason } from './availability.ts';
import { PasskeyUnavailable } from './unavailable.tsx';

const load = () => import('./ceremony.ts');

/** Renders nothing until the service has reported where passkeys work. */
export default function PasskeySignIn() {
  const [place, setPlace] = useState<Place | null>(null);
  useEffect(() => {
    // If this fails, users sign in with their password.
    call('getRelyingParty').then(setPlace, () => {});
  }, []);
  if (!place) return null;
  const reason = unavailableReason(place, pageLocation());
  return (
    <div className="mt-4 flex flex-col gap-2 border-line border-t pt-4">
      {reason ? <PasskeyUnavailable reason={reason} /> : <ByPasskey />}
    </div>
  );
}

function ByPasskey() {
  const [message, setMessage] = useState<string | null>(null);
  const show = async (error: unknown) => setMessage((await load()).passkeyMessage(error));
  const sign_in = useMutation({
    mutationFn: async () => (await load()).signInWithPasskey(),
    onMutate: () => setMessage(null),
    onSuccess: session.begin,
    onError: show,
  });
  const pending = sign_in.isPending;
  // The browser allows one request at a time, so the autofill stops while the button's request runs.
  useEffect(() => {
    if (pending) return;
    let stop: (() => void) | null = null;
    let is_unmounted = false;
    void load().then(({ offerPasskeys, passkeyMessage }) => {
      if (is_unmounted) return;
      stop = offerPasskeys({
        onSignedIn: session.begin,
        onError: (error) => setMessage(passkeyMessage(error)),
      });
    });
    return () => {
      is_unmounted = true;
      stop?.();
    };
  }, [pending]);
  return (
    <>
      <Button busy={pending} onClick={() => sign_in.mutate()}>
        Use a passkey
      </Button>
      {message && (
        <p role="alert" className="text-failed">
          {message}
        </p>
      )}
    </>
  );
}
