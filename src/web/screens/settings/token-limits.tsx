/** The agents and teams that a token is limited to, by name. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { agentsQuery, teamsQuery } from '../../api/queries.ts';
import { FilterField } from '../../ui/filter-field.tsx';
import { ScrollBox } from '../../ui/scroll-box.tsx';
import { QueryState } from '../../ui/states.tsx';

export interface Limits {
  agent_ids: readonly string[];
  team_ids: readonly string[];
}

const none: Limits = { agent_ids: [], team_ids: [] };
/** The most names shown in a line. */
const NAMED_MAX = 3;

/** `chosen` null: no limit. */
export function TokenLimits({
  chosen,
  error,
  onChange,
}: {
  chosen: Limits | null;
  error: string | undefined;
  onChange: (limits: Limits | null) => void;
}) {
  return (
    <fieldset className="flex min-w-0 flex-col gap-1">
      <legend className="font-medium text-sm">Limits</legend>
      <label className="tap flex items-center gap-2">
        <input
          type="checkbox"
          checked={chosen !== null}
          onChange={(event) => onChange(event.target.checked ? none : null)}
          className="size-4 shrink-0 accent-accent"
        />
        Only certain agents or teams
      </label>
      {chosen && <Picker chosen={chosen} onChange={onChange} />}
      {error && (
        <p role="alert" className="text-failed text-sm">
          {error}
        </p>
      )}
    </fieldset>
  );
}

function Picker({ chosen, onChange }: { chosen: Limits; onChange: (limits: Limits) => void }) {
  const [sought, setQuery] = useState('');
  const agents = useQuery(agentsQuery);
  const teams = useQuery(teamsQuery);
  const list = (field: keyof Limits, noun: string, records: readonly { id: string; name: string }[]) =>
    records
      .filter(({ id, name }) => `${noun} ${name} ${id}`.toLowerCase().includes(sought.trim().toLowerCase()))
      .map(({ id, name }) => (
        <label key={id} className="tap flex min-w-0 items-center gap-2 px-2" title={id}>
          <input
            type="checkbox"
            checked={chosen[field].includes(id)}
            onChange={(event) => {
              const others = chosen[field].filter((item) => item !== id);
              onChange({ ...chosen, [field]: event.target.checked ? [...others, id] : others });
            }}
            className="size-4 shrink-0 accent-accent"
          />
          <span className="truncate">
            {name} <span className="text-muted text-sm">{noun}</span>
          </span>
        </label>
      ));
  return (
    <>
      <FilterField label="Find agents and teams" value={sought} onText={setQuery} />
      <ScrollBox label="Agents and teams" className="max-h-48 rounded-md border border-line py-1">
        <QueryState read={teams} rows={1}>
          {(records) => <>{list('team_ids', 'team', records)}</>}
        </QueryState>
        <QueryState read={agents} rows={2}>
          {(records) => <>{list('agent_ids', 'agent', records)}</>}
        </QueryState>
      </ScrollBox>
    </>
  );
}

/** An existing token's limits, by name; deleted agents and teams by id. */
export function LimitedTo({ limits: { agent_ids, team_ids } }: { limits: Limits }) {
  const agents = useQuery(agentsQuery);
  const teams = useQuery(teamsQuery);
  const named = (id: string, records: readonly { id: string; name: string }[] = []) =>
    records.find((record) => record.id === id)?.name ?? id;
  const names = [
    ...team_ids.map((id) => `team ${named(id, teams.data)}`),
    ...agent_ids.map((id) => `agent ${named(id, agents.data)}`),
  ];
  const more = names.length - NAMED_MAX;
  return (
    <span title={names.join(', ')}>
      limited to {names.slice(0, NAMED_MAX).join(', ') || 'nothing'}
      {more > 0 && ` and ${more} more`}
    </span>
  );
}
