/** The user's passkeys. Adding and removing one may require the password. */
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Pencil, Plus, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { Problem } from '../../../core/problem.ts';
import { type Answered, call, errorMessage } from '../../api/client.ts';
import { useSession } from '../../api/session.ts';
import { Button, IconButton } from '../../ui/button.tsx';
import { deviceName } from '../../ui/device-name.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { DialogForm } from '../../ui/dialog-form.tsx';
import { TextField } from '../../ui/field.tsx';
import { assignErrorToField } from '../../ui/field-errors.ts';
import { Empty, QueryState } from '../../ui/states.tsx';
import { Ago } from '../../ui/time.tsx';
import { Section } from '../settings/section.tsx';
import { LastUsed, SettingsList, SettingsRow } from '../settings/settings-list.tsx';
import { pageLocation, unavailableReason } from './availability.ts';
import { PasskeyUnavailable } from './unavailable.tsx';

/** The user with their passkeys. */
const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: () => call('getMe'),
  staleTime: 0,
});

/** The origin at which passkeys work. */
const relyingPartyQuery = queryOptions({
  queryKey: ['relying-party'],
  queryFn: () => call('getRelyingParty'),
});

type Passkey = Answered<'getMe'>['passkeys'][number];
type Act = { act: 'add' } | { act: 'rename' | 'remove'; passkey: Passkey };

export function Passkeys() {
  const read = useQuery(meQuery);
  const { data: place } = useQuery(relyingPartyQuery);
  const [act, setAct] = useState<Act | null>(null);
  const close = () => setAct(null);
  const unavailable = place && unavailableReason(place, pageLocation());
  return (
    <Section
      title="Passkeys"
      about="Sign in with your fingerprint, your face or a device PIN. You can still use your password."
      actions={
        place &&
        !unavailable && (
          <Button icon={<Plus aria-hidden />} onClick={() => setAct({ act: 'add' })}>
            Add a passkey
          </Button>
        )
      }
    >
      {unavailable && <PasskeyUnavailable reason={unavailable} />}
      <QueryState read={read} rows={2}>
        {({ passkeys }) =>
          passkeys.length === 0 ? (
            <Empty title="No passkeys yet." />
          ) : (
            <SettingsList>
              {passkeys.map((passkey) => (
                <SettingsRow
                  key={passkey.id}
                  name={passkey.name}
                  about={
                    <>
                      added <Ago at={passkey.created_at} /> · <LastUsed at={passkey.last_used_at} />
                    </>
                  }
                >
                  <IconButton
                    label={`Rename ${passkey.name}`}
                    icon={<Pencil aria-hidden />}
                    onClick={() => setAct({ act: 'rename', passkey })}
                  />
                  <IconButton
                    label={`Remove ${passkey.name}`}
                    icon={<Trash2 aria-hidden />}
                    onClick={() => setAct({ act: 'remove', passkey })}
                  />
                </SettingsRow>
              ))}
            </SettingsList>
          )
        }
      </QueryState>
      {act?.act === 'add' && <AddPasskey onClose={close} />}
      {act?.act === 'rename' && <RenamePasskey passkey={act.passkey} onClose={close} />}
      {act?.act === 'remove' && <RemovePasskey passkey={act.passkey} onClose={close} />}
    </Section>
  );
}

function AddPasskey({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState(() => deviceName(navigator.userAgent));
  const act = useAct({
    act: async (current_password) => {
      const { addPasskey } = await import('./ceremony.ts');
      await addPasskey({ name: name.trim(), ...current_password });
    },
    messageOf: async (error) => (await import('./ceremony.ts')).passkeyMessage(error),
    onDone: onClose,
  });
  return (
    <Dialog open onClose={onClose} title="Add a passkey">
      <DialogForm
        submit_label="Add a passkey"
        busy={act.busy}
        error={act.rest}
        onSubmit={act.submit}
        onCancel={onClose}
      >
        <NameField value={name} onChange={setName} error={act.of_name} />
        {act.password}
      </DialogForm>
    </Dialog>
  );
}

function RenamePasskey({ passkey, onClose }: { passkey: Passkey; onClose: () => void }) {
  const [name, setName] = useState(passkey.name);
  const queries = useQueryClient();
  const rename = useMutation({
    mutationFn: () =>
      call('renamePasskey', { params: { passkey_id: passkey.id }, body: { name: name.trim() } }),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: meQuery.queryKey });
      onClose();
    },
  });
  const wrong = assignErrorToField(rename.error, ['name']);
  return (
    <Dialog open onClose={onClose} title={`Rename ${passkey.name}`}>
      <DialogForm
        submit_label="Rename"
        busy={rename.isPending}
        error={wrong.rest}
        onSubmit={() => rename.mutate()}
        onCancel={onClose}
      >
        <NameField value={name} onChange={setName} error={wrong.name} />
      </DialogForm>
    </Dialog>
  );
}

function RemovePasskey({ passkey, onClose }: { passkey: Passkey; onClose: () => void }) {
  const act = useAct({
    act: (body) => call('deletePasskey', { params: { passkey_id: passkey.id }, body }),
    messageOf: async (error) => errorMessage(error),
    onDone: onClose,
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Remove ${passkey.name}?`}
      description="You will no longer be able to sign in with it. Your device may keep offering it until you remove it there too."
    >
      <DialogForm
        submit_label="Remove passkey"
        variant="danger"
        busy={act.busy}
        error={act.rest}
        onSubmit={act.submit}
        onCancel={onClose}
      >
        {act.password}
      </DialogForm>
    </Dialog>
  );
}

/** A mutation for which the service may require the password. The field is shown only then. */
function useAct(options: {
  act: (current_password: { current_password?: string }) => Promise<unknown>;
  messageOf: (error: unknown) => Promise<string>;
  onDone: () => void;
}) {
  const username = useSession()?.user.username ?? '';
  const [needs_password, setNeedsPassword] = useState(false);
  const [password, setPassword] = useState('');
  const [message, setMessage] = useState<string | null>(null);
  const queries = useQueryClient();
  const run = useMutation({
    mutationFn: () => options.act(needs_password ? { current_password: password } : {}),
    onMutate: () => setMessage(null),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: meQuery.queryKey });
      options.onDone();
    },
    onError: async (error) => {
      if (error instanceof Problem && error.code === 'password_required' && !needs_password)
        setNeedsPassword(true);
      else setMessage(await options.messageOf(error));
    },
  });
  const of_password = message === 'invalid username or password';
  const of_name = message?.startsWith('name ') ?? false;
  return {
    busy: run.isPending,
    submit: () => run.mutate(),
    of_name: of_name ? (message ?? undefined) : undefined,
    rest: of_password || of_name ? undefined : (message ?? undefined),
    password: needs_password && (
      <>
        <input type="hidden" name="username" autoComplete="username" value={username} />
        <TextField
          label="Current password"
          error={of_password && message}
          hint="Required unless you entered it in this sign-in within the last ten minutes."
          type="password"
          autoComplete="current-password"
          required
          autoFocus
          value={password}
          onText={setPassword}
        />
      </>
    ),
  };
}

function NameField({
  value,
  onChange,
  error,
}: {
  value: string;
  onChange: (name: string) => void;
  error?: string | undefined;
}) {
  return (
    <TextField
      label="Name"
      error={error}
      hint="Helps you recognize it"
      required
      autoComplete="off"
      value={value}
      onText={onChange}
    />
  );
}
