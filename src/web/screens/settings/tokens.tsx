/** API tokens for programs. The token itself is shown once, right after it is created. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Plus, Trash2 } from 'lucide-react';
import { useState } from 'react';
import type { SentBody } from '../../../api/route.ts';
import type { RouteOf } from '../../../api/routes.ts';
import type { Scope } from '../../../core/grant.ts';
import { grantableScopes } from '../../../core/policy.ts';
import { useActKey } from '../../api/act-key.ts';
import { type Answered, call, errorMessage, type ItemOf } from '../../api/client.ts';
import { tokensQuery } from '../../api/queries.ts';
import { useSession } from '../../api/session.ts';
import { Button, IconButton } from '../../ui/button.tsx';
import { Copy } from '../../ui/copy.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { DialogForm } from '../../ui/dialog-form.tsx';
import { Field, TextField } from '../../ui/field.tsx';
import { assignErrorToField } from '../../ui/field-errors.ts';
import { Select } from '../../ui/select.tsx';
import { Empty, QueryState } from '../../ui/states.tsx';
import { Ago, Clock } from '../../ui/time.tsx';
import { Section } from './section.tsx';
import { LastUsed, SettingsList, SettingsRow } from './settings-list.tsx';
import { LimitedTo, type Limits, TokenLimits } from './token-limits.tsx';
import { Scopes } from './token-scopes.tsx';

type Token = ItemOf<'listTokens'>;

export function Tokens() {
  const read = useQuery(tokensQuery);
  const [creating, setCreating] = useState(false);
  const [created, setCreated] = useState<Answered<'createToken'> | null>(null);
  const [deleting, setDeleting] = useState<Token | null>(null);
  const newToken = (
    <Button icon={<Plus aria-hidden />} onClick={() => setCreating(true)}>
      New token
    </Button>
  );
  return (
    <Section
      title="API tokens"
      about="A token can do what its scopes allow, and never more than you can do yourself. Give each program its own token, so that you can revoke it separately."
      actions={newToken}
    >
      {created && <CreatedToken token={created} onDone={() => setCreated(null)} />}
      <QueryState read={read} rows={3}>
        {(tokens) =>
          tokens.length === 0 ? (
            <Empty
              title="No API tokens yet. A token lets a program use the API on your behalf."
              cli="svc tokens create NAME"
              operation="createToken"
            />
          ) : (
            <SettingsList>
              {tokens.map((token) => (
                <SettingsRow
                  key={token.id}
                  name={token.name}
                  about={
                    <>
                      {token.scopes.join(', ') || 'no scopes'} · <TokenLimitsText token={token} />
                      created <Ago at={token.created_at} /> · <LastUsed at={token.last_used_at} /> ·{' '}
                      {token.expires_at ? (
                        <>
                          expires <Clock at={token.expires_at} />
                        </>
                      ) : (
                        'never expires'
                      )}
                    </>
                  }
                >
                  <IconButton
                    label={`Revoke ${token.name}`}
                    icon={<Trash2 aria-hidden />}
                    onClick={() => setDeleting(token)}
                  />
                </SettingsRow>
              ))}
            </SettingsList>
          )
        }
      </QueryState>
      {creating && (
        <NewToken
          onClose={() => setCreating(false)}
          onCreated={(token) => {
            setCreating(false);
            setCreated(token);
          }}
        />
      )}
      {deleting && <DeleteToken token={deleting} onClose={() => setDeleting(null)} />}
    </Section>
  );
}

function CreatedToken({ token, onDone }: { token: Answered<'createToken'>; onDone: () => void }) {
  return (
    <div role="status" className="flex flex-col gap-2 rounded-lg border border-line bg-marked p-3">
      <p>
        Copy the token <b>{token.name}</b> now. It is never shown again.
      </p>
      <div className="flex flex-wrap items-center gap-2">
        <code className="min-w-0 flex-1 break-all rounded bg-ground px-2 py-1 font-mono">{token.token}</code>
        <Copy text={token.token} />
        <Button onClick={onDone}>Done</Button>
      </div>
    </div>
  );
}

function TokenLimitsText({ token }: { token: Token }) {
  const limits = toLimits(token);
  return (
    limits && (
      <>
        <LimitedTo limits={limits} /> ·{' '}
      </>
    )
  );
}

/** The limits of an API token; null: none. */
function toLimits({ agent_ids, team_ids }: Token): Limits | null {
  return agent_ids === null && team_ids === null
    ? null
    : { agent_ids: agent_ids ?? [], team_ids: team_ids ?? [] };
}

const spans = [
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
  { value: '365', label: '1 year' },
  { value: 'date', label: 'Custom date…' },
  { value: '', label: 'No expiration' },
];

function NewToken({
  onClose,
  onCreated,
}: {
  onClose: () => void;
  onCreated: (token: Answered<'createToken'>) => void;
}) {
  const [name, setName] = useState('');
  const [span, setSpan] = useState('90');
  const [day, setDay] = useState('');
  const [limits, setLimits] = useState<Limits | null>(null);
  const { offered, scopes, setScopes } = useScopes(limits);
  const [is_unlimited, setUnlimited] = useState(false);
  // The expiry must not move between retries of the same request.
  const [opened_at] = useState(Date.now);
  const create = useCreateToken(onCreated);
  const wrong = assignErrorToField(create.error, ['name', 'expires_at', 'scopes', 'agent_ids', 'team_ids']);
  const submit = () => {
    const lacks_limits = limits !== null && limits.agent_ids.length + limits.team_ids.length === 0;
    setUnlimited(lacks_limits);
    if (lacks_limits) return;
    create.mutate({
      ...{ name: name.trim(), expires_at: expiryTime(span, day, opened_at), scopes },
      ...(limits && { agent_ids: [...limits.agent_ids], team_ids: [...limits.team_ids] }),
    });
  };
  return (
    <Dialog open onClose={onClose} title="New API token">
      <DialogForm
        submit_label="Create token"
        busy={create.isPending}
        error={wrong.rest}
        onSubmit={submit}
        onCancel={onClose}
      >
        <TextField
          label="Name"
          error={wrong.name}
          hint="What the token is for"
          required
          autoComplete="off"
          value={name}
          onText={setName}
        />
        <Field label="Expires" error={span === 'date' ? undefined : wrong.expires_at}>
          {(control) => <Select {...control} choices={spans} value={span} onChange={setSpan} />}
        </Field>
        {span === 'date' && (
          <TextField
            label="Last day"
            error={wrong.expires_at}
            type="date"
            required
            value={day}
            onText={setDay}
          />
        )}
        <Scopes offered={offered} chosen={scopes} error={wrong.scopes} onChange={setScopes} />
        <TokenLimits
          chosen={limits}
          error={is_unlimited ? 'Choose at least one agent or team.' : (wrong.agent_ids ?? wrong.team_ids)}
          onChange={(chosen) => {
            setLimits(chosen);
            setUnlimited(false);
          }}
        />
      </DialogForm>
    </Dialog>
  );
}

/** The scopes that the user can grant, and the chosen ones: at first all but `admin`. */
function useScopes(limits: Limits | null) {
  const role = useSession()?.user.role ?? 'user';
  // A token that is limited to agents or teams cannot have root's scopes.
  const offered = grantableScopes(limits === null ? role : 'user');
  const [picked, setScopes] = useState<Scope[]>(() =>
    grantableScopes(role).filter((scope) => scope !== 'admin'),
  );
  return { offered, scopes: picked.filter((scope) => offered.includes(scope)), setScopes };
}

function useCreateToken(onCreated: (token: Answered<'createToken'>) => void) {
  const queries = useQueryClient();
  const keyOf = useActKey();
  return useMutation({
    mutationFn: (body: SentBody<RouteOf<'createToken'>>) =>
      call('createToken', { body, idempotency_key: keyOf(body) }),
    onSuccess: (token) => {
      void queries.invalidateQueries({ queryKey: tokensQuery.queryKey });
      onCreated(token);
    },
  });
}

/** A day ends at local midnight. */
function expiryTime(span: string, day: string, from_ms: number): string | null {
  if (span === '') return null;
  if (span !== 'date') return new Date(from_ms + Number(span) * 86_400_000).toISOString();
  const end = new Date(`${day}T00:00:00`);
  end.setDate(end.getDate() + 1);
  return end.toISOString();
}

function DeleteToken({ token, onClose }: { token: Token; onClose: () => void }) {
  const queries = useQueryClient();
  const end = useMutation({
    mutationFn: () => call('deleteToken', { params: { token_id: token.id } }),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: tokensQuery.queryKey });
      onClose();
    },
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Revoke ${token.name}?`}
      description="Programs that use it lose access immediately."
    >
      <DialogForm
        submit_label="Revoke token"
        variant="danger"
        busy={end.isPending}
        error={end.error ? errorMessage(end.error) : undefined}
        onSubmit={() => end.mutate()}
        onCancel={onClose}
      />
    </Dialog>
  );
}
