/** The users of this service, for root. */
import { useQuery } from '@tanstack/react-query';
import { Ellipsis, KeyRound, PencilLine, Plus, ShieldCheck, ShieldOff, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { type UserRecord, usersQuery } from '../../api/queries.ts';
import { useSession } from '../../api/session.ts';
import { NO_ROW_KEYS } from '../../shell/list-keys.ts';
import { Button, IconButton } from '../../ui/button.tsx';
import { Menu } from '../../ui/menu.tsx';
import { RootRequired, Screen } from '../../ui/screen.tsx';
import { ListNote, QueryState } from '../../ui/states.tsx';
import { TableHead } from '../../ui/table-head.tsx';
import { Ago } from '../../ui/time.tsx';
import { type UserAct, UserDialog } from './user-dialog.tsx';

const columns = [
  { label: 'Username' },
  { label: 'Role' },
  { label: 'Created', className: 'max-sm:hidden' },
  { label: 'Actions', className: 'w-12', unseen: true },
];

export function Users() {
  const session = useSession();
  return session?.user.role === 'root' ? <UserList own_id={session.user.id} /> : <RootRequired />;
}

function UserList({ own_id }: { own_id: string }) {
  const read = useQuery(usersQuery);
  const [act, setAct] = useState<UserAct | null>(null);
  return (
    <Screen
      title="Users"
      rowKeys={NO_ROW_KEYS}
      actions={
        <Button variant="primary" icon={<Plus aria-hidden />} onClick={() => setAct({ kind: 'create' })}>
          New user
        </Button>
      }
    >
      <QueryState read={read}>
        {(users) => (
          <>
            <table className="w-full text-left">
              <TableHead columns={columns} />
              <tbody>
                {users.map((user) => (
                  <tr key={user.id} data-row className="border-line border-b hover:bg-surface">
                    <th scope="row" className="max-w-0 py-1 pr-2 pl-4 font-normal">
                      <span className="flex min-w-0 items-center gap-2">
                        <span className="truncate" title={user.username}>
                          {user.username}
                        </span>
                        {user.id === own_id && <span className="shrink-0 text-muted text-sm">You</span>}
                      </span>
                    </th>
                    <td className="w-24 px-2 py-1">{user.role}</td>
                    <td className="hidden w-40 px-2 py-1 text-muted sm:table-cell">
                      <Ago at={user.created_at} />
                    </td>
                    <td className="px-2 py-1 text-right">
                      <UserMenu user={user} onAct={setAct} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
            <ListNote
              rows={users.length}
              title="Users see their own agents, and the teams that they own or belong to. Root users see everything."
              cli="svc users create leo"
              operation="createUser"
            />
          </>
        )}
      </QueryState>
      {act && <UserDialog act={act} onClose={() => setAct(null)} />}
    </Screen>
  );
}

function UserMenu({ user, onAct }: { user: UserRecord; onAct: (act: UserAct) => void }) {
  const root = user.role === 'root';
  return (
    <Menu
      trigger={<IconButton label={`Actions for ${user.username}`} icon={<Ellipsis aria-hidden />} />}
      items={[
        { label: 'Rename', icon: <PencilLine />, onSelect: () => onAct({ kind: 'rename', user }) },
        { label: 'Set password', icon: <KeyRound />, onSelect: () => onAct({ kind: 'password', user }) },
        {
          label: root ? 'Make regular user' : 'Make root',
          icon: root ? <ShieldOff /> : <ShieldCheck />,
          onSelect: () => onAct({ kind: 'role', user }),
        },
        { label: 'Delete', icon: <Trash2 />, danger: true, onSelect: () => onAct({ kind: 'delete', user }) },
      ]}
    />
  );
}
