/**
 * Signing in with a passkey: the button under the form, and what the browser offers in it. Made of what the sign-in page has
 * loaded anyhow.
 */
import { useMutation } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { call } from '../api/client.ts';
import { session } from '../api/session.ts';
import { Button } from '../ui/button.tsx';
import { Hindered } from './hindered.tsx';
import { here, hindrance, type Place } from './place.ts';

const load = () => import('./ceremony.ts');

/** Nothing until the service has said where passkeys work. */
export default function PasskeySignIn() {
  const [place, setPlace] = useState<Place | null>(null);
  useEffect(() => {
    // Without an answer there is the password.
    call('getRelyingParty').then(setPlace, () => {});
  }, []);
  if (!place) return null;
  const hindered = hindrance(place, here());
  return (
    <div className="mt-4 flex flex-col gap-2 border-line border-t pt-4">
      {hindered ? <Hindered hindrance={hindered} /> : <ByPasskey />}
    </div>
  );
}

function ByPasskey() {
  const [said, setSaid] = useState<string | null>(null);
  const tell = async (error: unknown) => setSaid((await load()).passkeyWords(error));
  const sign_in = useMutation({
    mutationFn: async () => (await load()).signInByPasskey(),
    onMutate: () => setSaid(null),
    onSuccess: session.begin,
    onError: tell,
  });
  const asking = sign_in.isPending;
  // One is asked for at a time: what the browser offers makes room for the button.
  useEffect(() => {
    if (asking) return;
    let stop: (() => void) | null = null;
    let gone = false;
    void load().then(({ offerPasskeys, passkeyWords }) => {
      if (gone) return;
      stop = offerPasskeys({
        onSignedIn: session.begin,
        onError: (error) => setSaid(passkeyWords(error)),
      });
    });
    return () => {
      gone = true;
      stop?.();
    };
  }, [asking]);
  return (
    <>
      <Button busy={asking} onClick={() => sign_in.mutate()}>
        Use a passkey
      </Button>
      {said && (
        <p role="alert" className="text-failed">
          {said}
        </p>
      )}
    </>
  );
}
