/** Named tokens for programs. A token itself is seen once, right after it was made. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Plus, Trash2 } from 'lucide-react';
import { useState } from 'react';
import type { Scope } from '../../../core/grant.ts';
import { grantableScopes } from '../../../core/policy.ts';
import { useActKey } from '../../api/act-key.ts';
import { type Answered, call, type ItemOf, wordsOf } from '../../api/client.ts';
import { tokensQuery } from '../../api/queries.ts';
import { useSession } from '../../api/session.ts';
import { ActForm } from '../../ui/act-form.tsx';
import { Button, IconButton } from '../../ui/button.tsx';
import { Copy } from '../../ui/copy.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, TextField } from '../../ui/field.tsx';
import { placed } from '../../ui/placed.ts';
import { Select } from '../../ui/select.tsx';
import { Empty, Reading } from '../../ui/states.tsx';
import { Ago, Clock } from '../../ui/time.tsx';
import { OwnList, OwnRow, Used } from './own-list.tsx';
import { Section } from './section.tsx';
import { LimitedTo, type Limits, TokenLimits } from './token-limits.tsx';
import { Scopes } from './token-scopes.tsx';

type Token = ItemOf<'listTokens'>;

export function Tokens() {
  const read = useQuery(tokensQuery);
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<Answered<'createToken'> | null>(null);
  const [ending, setEnding] = useState<Token | null>(null);
  const newToken = (
    <Button icon={<Plus aria-hidden />} onClick={() => setMaking(true)}>
      New token
    </Button>
  );
  return (
    <Section
      title="API tokens"
      about="A token does what its scopes allow, and never more than you may do. Give each program its own, so that you can end it alone."
      actions={newToken}
    >
      {made && <Made token={made} onDone={() => setMade(null)} />}
      <Reading read={read} rows={3}>
        {(tokens) =>
          tokens.length === 0 ? (
            <Empty title="No API tokens." cli="svc tokens create NAME" />
          ) : (
            <OwnList>
              {tokens.map((token) => (
                <OwnRow
                  key={token.id}
                  name={token.name}
                  about={
                    <>
                      {token.scopes.join(', ') || 'no scopes'} · <LimitsOf token={token} />
                      made <Ago at={token.created_at} /> · <Used at={token.last_used_at} /> ·{' '}
                      {token.expires_at ? (
                        <>
                          ends <Clock at={token.expires_at} />
                        </>
                      ) : (
                        'no end'
                      )}
                    </>
                  }
                >
                  <IconButton
                    label={`Delete ${token.name}`}
                    icon={<Trash2 aria-hidden />}
                    onClick={() => setEnding(token)}
                  />
                </OwnRow>
              ))}
            </OwnList>
          )
        }
      </Reading>
      {making && (
        <NewToken
          onClose={() => setMaking(false)}
          onMade={(token) => {
            setMaking(false);
            setMade(token);
          }}
        />
      )}
      {ending && <EndToken token={ending} onClose={() => setEnding(null)} />}
    </Section>
  );
}

function Made({ token, onDone }: { token: Answered<'createToken'>; onDone: () => void }) {
  return (
    <div role="status" className="flex flex-col gap-2 rounded-lg border border-line bg-marked p-3">
      <p>
        The token <b>{token.name}</b>. Copy it now: it is never shown again.
      </p>
      <div className="flex flex-wrap items-center gap-2">
        <code className="min-w-0 flex-1 break-all rounded bg-ground px-2 py-1 font-mono">{token.token}</code>
        <Copy text={token.token} />
        <Button onClick={onDone}>Done</Button>
      </div>
    </div>
  );
}

function LimitsOf({ token }: { token: Token }) {
  const limits = limitsOf(token);
  return (
    limits && (
      <>
        <LimitedTo limits={limits} /> ·{' '}
      </>
    )
  );
}

/** The limits of an API token; null: none. */
function limitsOf({ agent_ids, team_ids }: Token): Limits | null {
  return agent_ids === null && team_ids === null
    ? null
    : { agent_ids: agent_ids ?? [], team_ids: team_ids ?? [] };
}

const spans = [
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
  { value: '365', label: 'a year' },
  { value: 'date', label: 'until a day…' },
  { value: '', label: 'no end' },
];

function NewToken({
  onClose,
  onMade,
}: {
  onClose: () => void;
  onMade: (token: Answered<'createToken'>) => void;
}) {
  const [name, setName] = useState('');
  const [span, setSpan] = useState('90');
  const [day, setDay] = useState('');
  const role = useSession()?.user.role ?? 'user';
  const [limits, setLimits] = useState<Limits | null>(null);
  // What only root may do does not concern an agent or a team.
  const offered = grantableScopes(limits === null ? role : 'user');
  const [picked, setPicked] = useState<Scope[]>(() =>
    grantableScopes(role).filter((scope) => scope !== 'admin'),
  );
  const scopes = picked.filter((scope) => offered.includes(scope));
  const [empty, setEmpty] = useState(false);
  // The same token is asked for however often it is tried, so its end does not move with the clock.
  const [opened_at] = useState(Date.now);
  const queries = useQueryClient();
  const keyOf = useActKey();
  const make = useMutation({
    mutationFn: () => {
      const body = {
        ...{ name: name.trim(), expires_at: endOf(span, day, opened_at), scopes },
        ...(limits && { agent_ids: [...limits.agent_ids], team_ids: [...limits.team_ids] }),
      };
      return call('createToken', { body, idempotency_key: keyOf(body) });
    },
    onSuccess: (token) => {
      void queries.invalidateQueries({ queryKey: tokensQuery.queryKey });
      onMade(token);
    },
  });
  const wrong = placed(make.error, ['name', 'expires_at', 'scopes', 'agent_ids', 'team_ids']);
  return (
    <Dialog open onClose={onClose} title="New API token">
      <ActForm
        act="Make token"
        busy={make.isPending}
        error={wrong.rest}
        onSubmit={() => {
          const nothing = limits !== null && limits.agent_ids.length + limits.team_ids.length === 0;
          setEmpty(nothing);
          if (!nothing) make.mutate();
        }}
        onCancel={onClose}
      >
        <TextField
          label="Name"
          error={wrong.name}
          hint="What it is for"
          required
          autoComplete="off"
          value={name}
          onText={setName}
        />
        <Field label="Good for" error={span === 'date' ? undefined : wrong.expires_at}>
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
        <Scopes offered={offered} chosen={scopes} error={wrong.scopes} onChange={setPicked} />
        <TokenLimits
          chosen={limits}
          error={empty ? 'Choose at least one agent or team.' : (wrong.agent_ids ?? wrong.team_ids)}
          onChange={(chosen) => {
            setLimits(chosen);
            setEmpty(false);
          }}
        />
      </ActForm>
    </Dialog>
  );
}

/** A day ends at its midnight here. */
function endOf(span: string, day: string, from_ms: number): string | null {
  if (span === '') return null;
  if (span !== 'date') return new Date(from_ms + Number(span) * 86_400_000).toISOString();
  const end = new Date(`${day}T00:00:00`);
  end.setDate(end.getDate() + 1);
  return end.toISOString();
}

function EndToken({ token, onClose }: { token: Token; onClose: () => void }) {
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
      title={`Delete ${token.name}?`}
      description="Programs that use it are refused from now on."
    >
      <ActForm
        act="Delete token"
        look="danger"
        busy={end.isPending}
        error={end.error ? wordsOf(end.error) : undefined}
        onSubmit={() => end.mutate()}
        onCancel={onClose}
      />
    </Dialog>
  );
}
