/** The sign-in page. Afterwards it opens the page that was requested. */
import { useMutation } from '@tanstack/react-query';
import { Navigate, useRouter, useSearch } from '@tanstack/react-router';
import { type FormEvent, Suspense, useState } from 'react';
import { call, errorMessage } from '../../api/client.ts';
import { session, useSession } from '../../api/session.ts';
import { features } from '../../features.ts';
import { useScreenTitle } from '../../shell/title.ts';
import { Button } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';
import { EntryPage } from './entry-page.tsx';

const other_ways = features.flatMap(({ sign_in = [] }) => sign_in);

export function Login() {
  useScreenTitle('Sign in');
  const { to = '/agents' } = useSearch({ from: '/login' });
  const router = useRouter();
  const signed_in = useSession() !== null;
  const [username, setUsername] = useState('');
  const [password, setPassword] = useState('');
  const login = useMutation({
    mutationFn: () => call('login', { body: { username: username.trim(), password } }),
    onSuccess: (answer) => {
      session.begin(answer);
      router.history.replace(to);
    },
  });
  // Also after a wrong password: a passkey or another tab may have signed in since.
  if (signed_in && !login.isPending && !login.isSuccess) return <Navigate to={to} replace />;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    login.mutate();
  };
  return (
    <EntryPage title="Sign in">
      <form onSubmit={submit} className="flex flex-col gap-3">
        <TextField
          label="Username"
          name="username"
          autoComplete="username webauthn"
          autoCapitalize="none"
          spellCheck={false}
          required
          autoFocus
          value={username}
          onText={setUsername}
        />
        <TextField
          label="Password"
          error={login.error && errorMessage(login.error)}
          name="password"
          type="password"
          autoComplete="current-password"
          required
          value={password}
          onText={setPassword}
        />
        <Button type="submit" variant="primary" busy={login.isPending} className="mt-1">
          Sign in
        </Button>
      </form>
      <p className="mt-4 text-muted text-sm">
        No users yet? Open the link that svc printed in its terminal or log when it started, and enter the PIN
        below it. To print both again, run{' '}
        <code className="rounded bg-surface px-1 font-mono">svc join-link</code> on the machine that runs svc.
      </p>
      <Suspense fallback={null}>
        {other_ways.map((SignIn, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the list never changes
          <SignIn key={at} />
        ))}
      </Suspense>
    </EntryPage>
  );
}
