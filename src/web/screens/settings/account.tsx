/** The user's account and password. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { call, errorMessage } from '../../api/client.ts';
import { keys } from '../../api/keys.ts';
import { session, useSession } from '../../api/session.ts';
import { Button } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';
import { Clock } from '../../ui/time.tsx';
import { Section } from './section.tsx';

export function Account() {
  const user = useSession()?.user;
  if (!user) return null;
  return (
    <>
      <Section title="Account">
        <dl className="grid grid-cols-[max-content_1fr] gap-x-6 gap-y-1">
          <dt className="text-muted">Username</dt>
          <dd className="truncate">{user.username}</dd>
          <dt className="text-muted">Role</dt>
          <dd>{user.role}</dd>
          <dt className="text-muted">Created</dt>
          <dd>
            <Clock at={user.created_at} />
          </dd>
          <dt className="text-muted">Devices</dt>
          <dd>
            <Link to="/settings/$tab" params={{ tab: 'devices' }} className="underline">
              Show where you are signed in
            </Link>
          </dd>
        </dl>
      </Section>
      <PasswordForm username={user.username} />
    </>
  );
}

function PasswordForm({ username }: { username: string }) {
  const [current_password, setCurrent] = useState('');
  const [new_password, setNew] = useState('');
  const queries = useQueryClient();
  const change = useMutation({
    mutationFn: () => call('changePassword', { body: { current_password, new_password } }),
    onSuccess: (me) => {
      session.know(me);
      setCurrent('');
      setNew('');
      // Every other sign-in and API token has ended.
      void queries.invalidateQueries({ queryKey: keys.sign_ins });
      void queries.invalidateQueries({ queryKey: keys.tokens });
    },
  });
  const message = change.error ? errorMessage(change.error) : undefined;
  const about_current = message === 'invalid username or password';
  const submit = (event: FormEvent) => {
    event.preventDefault();
    change.mutate();
  };
  return (
    <Section
      title="Change password"
      about="This signs you out on all other devices and revokes all your API tokens."
    >
      <form onSubmit={submit} className="flex max-w-sm flex-col gap-3">
        <input type="hidden" name="username" autoComplete="username" value={username} />
        <TextField
          label="Current password"
          error={about_current ? message : undefined}
          type="password"
          autoComplete="current-password"
          required
          value={current_password}
          onText={setCurrent}
        />
        <TextField
          label="New password"
          error={about_current ? undefined : message}
          type="password"
          autoComplete="new-password"
          required
          value={new_password}
          onText={setNew}
        />
        <div className="flex items-center gap-3">
          <Button type="submit" variant="primary" busy={change.isPending}>
            Change password
          </Button>
          <span role="status" className="text-completed">
            {change.isSuccess && 'Password changed.'}
          </span>
        </div>
      </form>
    </Section>
  );
}
