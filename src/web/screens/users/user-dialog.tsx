/** The dialogs with which root manages users. The server's errors are shown in them. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useActKey } from '../../api/act-key.ts';
import { call } from '../../api/client.ts';
import { type UserRecord, usersQuery } from '../../api/queries.ts';
import { session } from '../../api/session.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { DialogForm } from '../../ui/dialog-form.tsx';
import { Field, TextField } from '../../ui/field.tsx';
import { assignErrorToField } from '../../ui/field-errors.ts';
import { Select } from '../../ui/select.tsx';

export type UserAct =
  | { kind: 'create' }
  | { kind: 'rename' | 'password' | 'role' | 'delete'; user: UserRecord };

const roles = [
  { value: 'user', label: 'User: own agents and teams' },
  { value: 'root', label: 'Root: everything' },
];

interface Fields {
  username: string;
  password: string;
  role: UserRecord['role'];
}

export function UserDialog({ act, onClose }: { act: UserAct; onClose: () => void }) {
  const user = act.kind === 'create' ? null : act.user;
  const [fields, setFields] = useState<Fields>({
    username: user?.username ?? '',
    password: '',
    role: 'user',
  });
  const save = useUserAct(act, onClose);
  const wrong = assignErrorToField(save.error, ['username', 'password']);
  const has_name = act.kind === 'create' || act.kind === 'rename';
  const has_password = act.kind === 'create' || act.kind === 'password';
  const { title, does, description } = textsFor(act);
  return (
    <Dialog open onClose={onClose} title={title} description={description}>
      <DialogForm
        submit_label={does}
        variant={act.kind === 'delete' ? 'danger' : 'primary'}
        busy={save.isPending}
        error={wrong.rest ?? (has_name ? undefined : wrong.username)}
        onSubmit={() => save.mutate(fields)}
        onCancel={onClose}
      >
        {has_name && (
          <TextField
            label="Username"
            error={wrong.username}
            hint="1 to 64 characters from a-z, 0-9, “.”, “_” and “-”"
            required
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            value={fields.username}
            onText={(username) => setFields({ ...fields, username })}
          />
        )}
        {has_password && (
          <TextField
            label="Password"
            error={wrong.password}
            type="password"
            required
            autoComplete="new-password"
            value={fields.password}
            onText={(password) => setFields({ ...fields, password })}
          />
        )}
        {act.kind === 'create' && (
          <Field label="Role">
            {(control) => (
              <Select
                {...control}
                choices={roles}
                value={fields.role}
                onChange={(value) => setFields({ ...fields, role: value === 'root' ? 'root' : 'user' })}
              />
            )}
          </Field>
        )}
      </DialogForm>
    </Dialog>
  );
}

function useUserAct(act: UserAct, onDone: () => void) {
  const queries = useQueryClient();
  const keyOf = useActKey();
  return useMutation({
    mutationFn: async ({ username, password, role }: Fields): Promise<UserRecord | undefined> => {
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
      onDone();
    },
  });
}

function otherRole({ role }: UserRecord): UserRecord['role'] {
  return role === 'root' ? 'user' : 'root';
}

function textsFor(act: UserAct): { title: string; does: string; description?: string } {
  if (act.kind === 'create') return { title: 'New user', does: 'Create user' };
  const { username, role } = act.user;
  const ends = `This signs ${username} out everywhere and revokes all their API tokens.`;
  switch (act.kind) {
    case 'rename':
      return { title: `Rename ${username}`, does: 'Rename' };
    case 'password':
      return { title: `Set a password for ${username}`, does: 'Set password', description: ends };
    case 'role':
      return role === 'root'
        ? { title: `Make ${username} a regular user?`, does: 'Make regular user', description: ends }
        : {
            title: `Make ${username} root?`,
            does: 'Make root',
            description: `Root has full access. ${ends}`,
          };
    case 'delete':
      return {
        title: `Delete ${username}?`,
        does: 'Delete user',
        description: `This revokes all of ${username}’s tokens. You cannot delete a user who still has agents or teams.`,
      };
  }
}
