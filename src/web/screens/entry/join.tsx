/**
 * Creating the root user with the link and the PIN that the service printed. The token is in the fragment, which is in no
 * server log, and is removed from the URL at once.
 */
import { useMutation } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { type ComponentType, type FormEvent, useEffect, useRef, useState } from 'react';
import { Problem } from '../../../core/problem.ts';
import { call, errorMessage } from '../../api/client.ts';
import { session } from '../../api/session.ts';
import { features } from '../../features.ts';
import { useScreenTitle } from '../../shell/title.ts';
import { Button, buttonClass } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';
import { EntryPage } from './entry-page.tsx';

/** Read once per page, because a second render would no longer find it. */
const token = takeToken();

function takeToken(): string {
  const found = new URLSearchParams(location.hash.slice(1)).get('t') ?? '';
  if (found) history.replaceState(history.state, '', location.pathname + location.search);
  return found;
}

const ENDED = ['join token expired', 'invalid join token'];

type Offer = ComponentType<{ onDone: () => void }>;

/** The first offer of a feature; null if there is none, or it cannot be loaded. */
async function findOffer(): Promise<Offer | null> {
  for (const { offer } of features) {
    const found = await offer?.().catch(() => null);
    if (found) return found;
  }
  return null;
}

export function Join() {
  useScreenTitle('Create the root user');
  const navigate = useNavigate();
  const [offered, setOffered] = useState<{ username: string; Offer: Offer } | null>(null);
  const proceed = () => void navigate({ to: '/agents/new', replace: true });
  if (offered) {
    return (
      <EntryPage title={`You are signed in as ${offered.username}`}>
        <offered.Offer onDone={proceed} />
      </EntryPage>
    );
  }
  return (
    <EntryPage title="Create the root user">
      {token === '' ? (
        <IncompleteLink />
      ) : (
        <JoinForm
          onJoined={async (username) => {
            const Offer = await findOffer();
            if (Offer) setOffered({ username, Offer });
            else proceed();
          }}
        />
      )}
    </EntryPage>
  );
}

function IncompleteLink() {
  return (
    <>
      <p className="mb-3">
        This link is incomplete. Open the complete link that the service printed. To print it again, run
        <code className="mx-1 rounded bg-surface px-1 font-mono">svc join-link</code> on the machine that runs
        svc, as the user that runs svc.
      </p>
      <Link to="/login" search={{}} className={buttonClass()}>
        Sign in instead
      </Link>
    </>
  );
}

function JoinForm({ onJoined }: { onJoined: (username: string) => Promise<void> }) {
  const [pin, setPin] = useState('');
  const [username, setUsername] = useState('');
  const [password, setPassword] = useState('');
  const join = useMutation({
    mutationFn: () =>
      call('join', {
        body: { token, pin: pin.replaceAll(/\D/g, ''), username: username.trim(), password },
      }),
    onSuccess: async (answer) => {
      session.begin(answer);
      await onJoined(answer.user.username);
    },
  });
  const message = join.error ? errorMessage(join.error) : null;
  const about = message === null ? null : fieldFor(message);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (join.error) fieldNamed(form.current!, fieldFor(errorMessage(join.error)))?.focus();
  }, [join.error]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    join.mutate();
  };
  return (
    <form ref={form} onSubmit={submit} className="flex flex-col gap-3">
      <TextField
        label="PIN from the terminal"
        error={about === 'pin' && pinError(message!, join.error)}
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
        error={about === 'username' && message}
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
        error={about === 'password' && message}
        hint={password.length >= 12 ? '✓ At least 12 characters' : 'At least 12 characters'}
        name="password"
        type="password"
        autoComplete="new-password"
        required
        value={password}
        onText={setPassword}
      />
      {about === 'form' && <JoinError message={message!} />}
      <Button type="submit" variant="primary" busy={join.isPending} className="mt-1">
        Create root user
      </Button>
      {message === 'root already initialized' && <SignInLink />}
    </form>
  );
}

/** The field that the server's error is about. */
function fieldFor(message: string): 'pin' | 'username' | 'password' | 'form' {
  if (message === 'invalid pin') return 'pin';
  if (message.startsWith('password must')) return 'password';
  return message.startsWith('username') ? 'username' : 'form';
}

function fieldNamed(form: HTMLFormElement, name: string): HTMLInputElement | null {
  return form.querySelector(`input[name="${name}"]`);
}

function pinError(message: string, error: unknown): string {
  const left = error instanceof Problem ? error.tries_left : undefined;
  if (left === undefined) return message;
  if (left > 0) return `${message}; ${left === 1 ? '1 try' : `${left} tries`} left`;
  return `${message}; no tries left. Run svc join-link on the machine that runs svc to get a new PIN.`;
}

function JoinError({ message }: { message: string }) {
  return (
    <p role="alert" className="text-failed">
      {message}
      {ENDED.includes(message) && (
        <span className="block text-muted">
          Run <code className="font-mono">svc join-link</code> on the machine that runs svc, as the user that
          runs svc, to get a valid link.
        </span>
      )}
    </p>
  );
}

/** Takes the focus, because it is the only way to continue. */
function SignInLink() {
  const link = useRef<HTMLAnchorElement>(null);
  useEffect(() => link.current?.focus(), []);
  return (
    <Link ref={link} to="/login" search={{}} className={buttonClass()}>
      Sign in
    </Link>
  );
}
