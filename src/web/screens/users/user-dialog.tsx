/** What root does to a user, one dialog each. Refusals stand in it in the server's words. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useActKey } from '../../api/act-key.ts';
import { call } from '../../api/client.ts';
import { type UserRecord, usersQuery } from '../../api/queries.ts';
import { session } from '../../api/session.ts';
import { ActForm } from '../../ui/act-form.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, TextField } from '../../ui/field.tsx';
import { placed } from '../../ui/placed.ts';
import { Select } from '../../ui/select.tsx';

export type UserAct =
  | { kind: 'create' }
  | { kind: 'rename' | 'password' | 'role' | 'delete'; user: UserRecord };

const roles = [
  { value: 'user', label: 'user: own agents, own teams' },
  { value: 'root', label: 'root: everything' },
];

export function UserDialog({ act, onClose }: { act: UserAct; onClose: () => void }) {
  const user = act.kind === 'create' ? null : act.user;
  const [username, setUsername] = useState(user?.username ?? '');
  const [password, setPassword] = useState('');
  const [role, setRole] = useState<UserRecord['role']>('user');
  const queries = useQueryClient();
  const keyOf = useActKey();

  const save = useMutation({
    mutationFn: async (): Promise<UserRecord | undefined> => {
      if (act.kind === 'create') {
        const body = { username: username.trim(), password, role };
        return call('createUser', { body, idempotency_key: keyOf(body) });
      }
      const params = { user_id: act.user.id };
      switch (act.kind) {
        case 'rename':
          return call('updateUser', { params, body: { username: username.trim() } });
        case 'password':
          return call('updateUser', { params, body: { password } });
        case 'role':
          return call('updateUser', { params, body: { role: otherRole(act.user) } });
        case 'delete':
          return call('deleteUser', { params });
      }
    },
    onSuccess: (changed) => {
      if (changed && changed.id === session.get()?.user.id) session.know(changed);
      void queries.invalidateQueries({ queryKey: usersQuery.queryKey });
      onClose();
    },
  });
  const wrong = placed(save.error, ['username', 'password']);
  const asks_name = act.kind === 'create' || act.kind === 'rename';
  const asks_password = act.kind === 'create' || act.kind === 'password';
  const { title, does, description } = wordsFor(act);
  return (
    <Dialog open onClose={onClose} title={title} description={description}>
      <ActForm
        act={does}
        look={act.kind === 'delete' ? 'danger' : 'primary'}
        busy={save.isPending}
        error={wrong.rest ?? (asks_name ? undefined : wrong.username)}
        onSubmit={() => save.mutate()}
        onCancel={onClose}
      >
        {asks_name && (
          <TextField
            label="Username"
            error={wrong.username}
            hint="1 to 64 of a-z, 0-9, “.”, “_” and “-”"
            required
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            value={username}
            onText={setUsername}
          />
        )}
        {asks_password && (
          <TextField
            label="Password"
            error={wrong.password}
            type="password"
            required
            autoComplete="new-password"
            value={password}
            onText={setPassword}
          />
        )}
        {act.kind === 'create' && (
          <Field label="Role">
            {(control) => (
              <Select
                {...control}
                choices={roles}
                value={role}
                onChange={(value) => setRole(value === 'root' ? 'root' : 'user')}
              />
            )}
          </Field>
        )}
      </ActForm>
    </Dialog>
  );
}

function otherRole({ role }: UserRecord): UserRecord['role'] {
  return role === 'root' ? 'user' : 'root';
}

function wordsFor(act: UserAct): { title: string; does: string; description?: string } {
  if (act.kind === 'create') return { title: 'New user', does: 'Create user' };
  const { username, role } = act.user;
  const ends = `This signs ${username} out everywhere, and ends the API tokens of ${username}.`;
  switch (act.kind) {
    case 'rename':
      return { title: `Rename ${username}`, does: 'Rename' };
    case 'password':
      return { title: `Set the password of ${username}`, does: 'Set password', description: ends };
    case 'role':
      return role === 'root'
        ? { title: `Make ${username} an ordinary user?`, does: 'Make user', description: ends }
        : {
            title: `Make ${username} root?`,
            does: 'Make root',
            description: `Root may do everything. ${ends}`,
          };
    case 'delete':
      return {
        title: `Delete ${username}?`,
        does: 'Delete user',
        description: `This ends the tokens of ${username}. A user who has agents or teams cannot be deleted.`,
      };
  }
}
