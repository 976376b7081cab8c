/** Renews the session while the tab is visible. Near its absolute end, asks for the password without leaving the page. */
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useEffect, useState } from 'react';
import { call, errorMessage } from '../api/client.ts';
import { isEnding, renewIfDue } from '../api/renewal.ts';
import { session, useSession } from '../api/session.ts';
import { Button } from '../ui/button.tsx';
import { TextField } from '../ui/field.tsx';
import { isTyping } from '../ui/keys.ts';
import { LazyDialog } from '../ui/lazy-dialog.tsx';
import { Clock } from '../ui/time.tsx';

const CHECK_INTERVAL_MS = 30_000;
/** This long before the end, not even an open dialog defers the prompt. */
const LAST_MS = 3 * 60_000;

export function Renewal() {
  const now = useSession();
  const [prompt, setPrompt] = useState<'bar' | 'dialog' | null>(null);
  const [later, setLater] = useState<string | null>(null);

  useEffect(() => {
    const check = () => {
      if (document.visibilityState !== 'visible') return;
      const held = session.get();
      const is_ending = held !== null && isEnding(held, Date.now());
      setPrompt((before) => (is_ending ? (before ?? promptFor(held)) : null));
      void renewIfDue();
    };
    check();
    const timer = setInterval(check, CHECK_INTERVAL_MS);
    document.addEventListener('visibilitychange', check);
    const stop = session.subscribe(check);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', check);
      stop();
    };
  }, []);

  if (!now || !prompt || later === now.token) return null;
  const onLater = () => setLater(now.token);
  if (prompt === 'bar')
    return <RenewalBar ends_at={now.expires_at} onRenew={() => setPrompt('dialog')} onLater={onLater} />;
  return <RenewalPrompt username={now.user.username} ends_at={now.expires_at} onLater={onLater} />;
}

/** A dialog would take the focus, and with it the rest of what the user types. Null: it has to wait. */
function promptFor({ expires_at }: { expires_at: number }): 'bar' | 'dialog' | null {
  const focused = document.activeElement;
  if (!isTyping({ target: focused })) return 'dialog';
  // A bar cannot be reached from an open dialog.
  if (focused?.closest('[role="dialog"]') == null) return 'bar';
  return expires_at - Date.now() < LAST_MS ? 'dialog' : null;
}

function RenewalBar({
  ends_at,
  onRenew,
  onLater,
}: {
  ends_at: number;
  onRenew: () => void;
  onLater: () => void;
}) {
  return (
    <div
      role="alert"
      className="fixed inset-x-2 top-2 z-40 mx-auto flex max-w-fit flex-wrap items-center gap-x-3 gap-y-1 rounded-lg border border-line bg-raised px-3 py-1.5 shadow-overlay"
    >
      <p>
        Your session ends at <Clock at={ends_at} />.
      </p>
      <div className="flex gap-2">
        <Button variant="primary" onClick={onRenew}>
          Stay signed in
        </Button>
        <Button variant="quiet" onClick={onLater}>
          Later
        </Button>
      </div>
    </div>
  );
}

function RenewalPrompt({
  username,
  ends_at,
  onLater,
}: {
  username: string;
  ends_at: number;
  onLater: () => void;
}) {
  const [password, setPassword] = useState('');
  const login = useMutation({
    mutationFn: () => call('login', { body: { username, password } }),
    onSuccess: (answer) => session.begin(answer),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    login.mutate();
  };
  return (
    <LazyDialog
      open
      onClose={onLater}
      title="Stay signed in?"
      description={
        <>
          Your session ends at <Clock at={ends_at} />. Enter your password to stay signed in and keep this
          page.
        </>
      }
    >
      <form onSubmit={submit} className="flex flex-col gap-3">
        <input type="hidden" name="username" autoComplete="username" value={username} />
        <TextField
          label={`Password for ${username}`}
          error={login.error && errorMessage(login.error)}
          type="password"
          name="password"
          autoComplete="current-password"
          required
          value={password}
          onText={setPassword}
        />
        <div className="flex justify-end gap-2">
          <Button onClick={onLater}>Later</Button>
          <Button type="submit" variant="primary" busy={login.isPending}>
            Stay signed in
          </Button>
        </div>
      </form>
    </LazyDialog>
  );
}
