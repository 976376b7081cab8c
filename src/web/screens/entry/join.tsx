/**
 * Making the root user, from the link and the PIN that the service printed. The link's token rides in the fragment, so
 * it reaches no log; it is taken out of the address at once.
 */
import { useMutation } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { call, wordsOf } from '../../api/client.ts';
import { session } from '../../api/session.ts';
import { Offer } from '../../passkeys/offer.tsx';
import { passkeysWork } from '../../passkeys/place.ts';
import { useScreenTitle } from '../../shell/title.ts';
import { Button, buttonClass } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';
import { EntryPage } from './entry-page.tsx';

/** Once per page: what is rendered twice must not lose it. */
const token = takeToken();

function takeToken(): string {
  const found = new URLSearchParams(location.hash.slice(1)).get('t') ?? '';
  if (found) history.replaceState(history.state, '', location.pathname + location.search);
  return found;
}

const ENDED = ['join token expired', 'invalid join token'];

export function Join() {
  useScreenTitle('Create the root user');
  const navigate = useNavigate();
  const [pin, setPin] = useState('');
  const [username, setUsername] = useState('');
  const [password, setPassword] = useState('');
  const [offered, setOffered] = useState(false);
  const goOn = () => void navigate({ to: '/agents/new', replace: true });
  const sign_in = useRef<HTMLAnchorElement>(null);
  const join = useMutation({
    mutationFn: () =>
      call('join', {
        body: { token, pin: pin.replaceAll(/\D/g, ''), username: username.trim(), password },
      }),
    onSuccess: async (answer) => {
      session.begin(answer);
      if (await passkeysWork()) setOffered(true);
      else goOn();
    },
  });
  const said = join.error ? wordsOf(join.error) : null;
  const taken = said === 'root already initialized';
  useEffect(() => {
    if (taken) sign_in.current?.focus();
  }, [taken]);

  if (offered) {
    return (
      <EntryPage title={`You are signed in, ${username.trim()}`}>
        <Offer onDone={goOn} />
      </EntryPage>
    );
  }
  if (token === '') {
    return (
      <EntryPage title="Create the root user">
        <p className="mb-3">
          This address has lost its last part. Open the whole link that the service printed, or run
          <code className="mx-1 rounded bg-surface px-1 font-mono">svc join-link</code> on the machine of the
          service, as the user of the service, to see it again.
        </p>
        <Link to="/login" search={{}} className={buttonClass()}>
          Sign in instead
        </Link>
      </EntryPage>
    );
  }
  const submit = (event: FormEvent) => {
    event.preventDefault();
    join.mutate();
  };
  const of_pin = said === 'invalid pin';
  const of_password = said?.startsWith('password must') ?? false;
  const of_username = said?.startsWith('username') ?? false;
  return (
    <EntryPage title="Create the root user">
      <form onSubmit={submit} className="flex flex-col gap-3">
        <TextField
          label="PIN from the terminal"
          error={of_pin && said}
          name="pin"
          inputMode="numeric"
          autoComplete="one-time-code"
          required
          autoFocus
          value={pin}
          onText={setPin}
          mono
          className="[&_input]:tracking-widest"
        />
        <TextField
          label="Username"
          error={of_username && said}
          name="username"
          autoComplete="username"
          autoCapitalize="none"
          spellCheck={false}
          required
          value={username}
          onText={setUsername}
        />
        <TextField
          label="Password"
          error={of_password && said}
          hint={password.length >= 12 ? '✓ at least 12 characters' : 'at least 12 characters'}
          name="password"
          type="password"
          autoComplete="new-password"
          required
          value={password}
          onText={setPassword}
        />
        {said && !of_pin && !of_password && !of_username && (
          <p role="alert" className="text-failed">
            {said}
            {ENDED.includes(said) && (
              <span className="block text-muted">
                Run <code className="font-mono">svc join-link</code> on the machine of the service, as the
                user of the service, to get a valid link.
              </span>
            )}
          </p>
        )}
        <Button type="submit" look="primary" busy={join.isPending} className="mt-1">
          Create root user
        </Button>
        {taken && (
          <Link ref={sign_in} to="/login" search={{}} className={buttonClass()}>
            Sign in
          </Link>
        )}
      </form>
    </EntryPage>
  );
}
