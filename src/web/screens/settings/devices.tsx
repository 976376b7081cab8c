/** The devices on which the user is signed in. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { LogOut } from 'lucide-react';
import { call, type ItemOf } from '../../api/client.ts';
import { signInsQuery } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { deviceName } from '../../ui/device-name.ts';
import { ActionError, QueryState } from '../../ui/states.tsx';
import { Clock } from '../../ui/time.tsx';
import { Section } from './section.tsx';
import { LastUsed, SettingsList, SettingsRow } from './settings-list.tsx';
import { SignOut } from './sign-out.tsx';

type SignIn = ItemOf<'listSignIns'>;

export function Devices() {
  const read = useQuery(signInsQuery);
  const end = useEndSignIns();
  const others = (read.data ?? []).filter(({ current }) => !current);
  return (
    <Section
      title="Where you are signed in"
      actions={
        others.length > 0 && (
          <Button
            variant="danger"
            icon={<LogOut aria-hidden />}
            busy={end.isPending}
            onClick={() => end.mutate(others)}
          >
            Sign out everywhere else
          </Button>
        )
      }
    >
      <ActionError error={end.error} />
      <QueryState read={read} rows={3}>
        {(sign_ins) => (
          <SettingsList>
            {sign_ins.toSorted(currentFirst).map((sign_in) => (
              <Device key={sign_in.id} sign_in={sign_in} />
            ))}
          </SettingsList>
        )}
      </QueryState>
    </Section>
  );
}

function Device({ sign_in }: { sign_in: SignIn }) {
  const end = useEndSignIns();
  const name = deviceName(sign_in.user_agent);
  return (
    <SettingsRow
      name={name}
      title={sign_in.user_agent ?? undefined}
      mark={sign_in.current && <span className="shrink-0 text-completed">This device</span>}
      about={
        <>
          {sign_in.ip ?? 'unknown IP address'} · <LastUsed at={sign_in.last_used_at} /> · signed in{' '}
          <Clock at={sign_in.created_at} />
          <ActionError error={end.error} />
        </>
      }
    >
      {sign_in.current ? (
        <SignOut />
      ) : (
        <Button
          busy={end.isPending}
          onClick={() => end.mutate([sign_in])}
          aria-label={`Sign out on ${name}, ${sign_in.ip ?? 'unknown IP address'}`}
        >
          Sign out
        </Button>
      )}
    </SettingsRow>
  );
}

function useEndSignIns() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (sign_ins: readonly SignIn[]) => {
      for (const { id } of sign_ins) await call('endSignIn', { params: { sign_in_id: id } });
    },
    onSettled: () => queries.invalidateQueries({ queryKey: signInsQuery.queryKey }),
  });
}

function currentFirst(a: SignIn, b: SignIn): number {
  return Number(b.current) - Number(a.current);
}
