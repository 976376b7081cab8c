/** The filter of the audit log, which the page's URL holds. */
import { useQuery } from '@tanstack/react-query';
import { ListFilter, X } from 'lucide-react';
import { useEffect, useId, useMemo, useState } from 'react';
import { escapeHidden } from '../../../core/visible.ts';
import { auditEvents } from '../../../features/audit/rules/audit.ts';
import { type AgentRecord, agentsQuery, usersQuery } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { Combobox, type ComboboxOption } from '../../ui/combobox.tsx';
import { cx } from '../../ui/cx.ts';
import { inputClass } from '../../ui/field.tsx';
import { Segmented } from '../../ui/segmented.tsx';
import { Select } from '../../ui/select.tsx';
import { useTyped } from '../../ui/use-typed.ts';
import { type AuditSearch, isPeriod } from './records.ts';

const events = [
  { value: '', label: 'All events' },
  ...auditEvents.toSorted().map((event) => ({ value: event, label: event })),
];

export function AuditFilter({
  search,
  onChange,
}: {
  search: AuditSearch;
  onChange: (change: AuditSearch) => void;
}) {
  // Folded on phones, to leave room for the list.
  const [open, setOpen] = useState(false);
  const { data: users = [] } = useQuery(usersQuery);
  const people = [
    { value: '', label: 'All users' },
    ...users.map(({ id, username }) => ({ value: id, label: username })),
  ];
  // A deleted user may still be in the log.
  if (search.user_id && !users.some(({ id }) => id === search.user_id)) {
    people.push({ value: search.user_id, label: search.user_id });
  }
  const filtered = Object.values(search).some((value) => value !== undefined);
  return (
    <search className="w-full">
      <Button
        icon={<ListFilter aria-hidden />}
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="sm:hidden"
      >
        {filtered ? 'Filtered' : 'Filter'}
      </Button>
      <div className={cx('flex-wrap items-center gap-2 pt-2 sm:flex sm:pt-0', open ? 'flex' : 'hidden')}>
        <Select
          aria-label="Event"
          data-filter
          choices={events}
          value={search.event ?? ''}
          onChange={(event) => onChange({ event: event || undefined })}
          className="sm:w-48"
        />
        <Select
          aria-label="User"
          choices={people}
          value={search.user_id ?? ''}
          onChange={(user_id) => onChange({ user_id: user_id || undefined })}
          className="sm:w-36"
        />
        <AgentField
          value={search.agent_id ?? ''}
          onChange={(agent_id) => onChange({ agent_id: agent_id || undefined })}
        />
        <Range search={search} onChange={onChange} />
        {filtered && (
          <Button
            variant="quiet"
            icon={<X aria-hidden />}
            onClick={() =>
              onChange({
                event: undefined,
                user_id: undefined,
                agent_id: undefined,
                last: undefined,
                since: undefined,
                until: undefined,
              })
            }
          >
            Clear filter
          </Button>
        )}
      </div>
    </search>
  );
}

/** The agents of the list by name, or a part of it. The id of another one, such as one that was deleted, can be typed. */
function AgentField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const id = useId();
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const { data: agents = [] } = useQuery(agentsQuery);
  const labels = useMemo(() => labelAgents(agents), [agents]);
  const apply = (typed: string): boolean => {
    const sought = typed.trim();
    // The list shows them with their ids.
    if (agents.filter(({ name }) => name === sought).length > 1) return false;
    const found = findAgent(agents, labels, sought)?.id ?? sought;
    setText(found);
    if (found !== value) onChange(found);
    return true;
  };
  return (
    <form
      className="w-full sm:w-44"
      onSubmit={(event) => {
        event.preventDefault();
        apply(text);
      }}
    >
      <label htmlFor={id} className="sr-only">
        Agent
      </label>
      <Combobox
        control={{ id }}
        label="Agents"
        placeholder="All agents"
        value={labels.get(text) ?? text}
        options={agents.map((agent) => toOption(agent, labels.get(agent.id)!))}
        onValue={(next) => (agents.some((agent) => agent.id === next) ? apply(next) : setText(next))}
        // An incomplete id matches nothing, so it is applied only now.
        onLeave={() => apply(text) || setText(value)}
      />
    </form>
  );
}

/** The agent with this id or label; else the only one whose name contains the text. */
function findAgent(
  agents: readonly AgentRecord[],
  labels: ReadonlyMap<string, string>,
  sought: string,
): AgentRecord | undefined {
  if (sought === '') return undefined;
  const exact = agents.find(({ id }) => id === sought || labels.get(id) === sought);
  if (exact) return exact;
  const text = sought.toLowerCase();
  const matches = agents.filter(({ name }) => name.toLowerCase().includes(text));
  return matches.length === 1 ? matches[0] : undefined;
}

/** The names of agents by id; each with its id if several have the same one. */
function labelAgents(agents: readonly AgentRecord[]): ReadonlyMap<string, string> {
  const by_name = Map.groupBy(agents, ({ name }) => name);
  return new Map(
    agents.map(({ id, name }) => [id, by_name.get(name)!.length > 1 ? `${name} (${id})` : name]),
  );
}

function toOption({ id, name, status }: AgentRecord, shown: string): ComboboxOption {
  const label = (
    <>
      <span className="flex min-w-0 gap-2">
        <span className="truncate font-medium">{escapeHidden(name)}</span>
        <span className="ml-auto shrink-0 text-muted">{status}</span>
      </span>
      {shown !== name && <span className="block truncate font-mono text-muted text-sm">{id}</span>}
    </>
  );
  return { value: id, label, words: `${name} ${id} ${shown}` };
}

const segments = [
  { value: 'all', label: 'All' },
  { value: '15m', label: '15 min' },
  { value: '1h', label: '1 h' },
  { value: '24h', label: '24 h' },
  { value: '7d', label: '7 d' },
  { value: 'custom', label: 'Custom' },
] as const;

/** A period up to now, or any two times. */
function Range({ search, onChange }: { search: AuditSearch; onChange: (change: AuditSearch) => void }) {
  const [custom, setCustom] = useState(false);
  const { last, since, until } = search;
  const is_custom = custom || since !== undefined || until !== undefined;
  const change = (times: Pick<AuditSearch, 'since' | 'until'>) => {
    // An incomplete time has no value, and must not hide the fields.
    setCustom(true);
    onChange(times);
  };
  return (
    <>
      <Segmented
        label="Time"
        segments={segments}
        value={isPeriod(last) ? last : is_custom ? 'custom' : 'all'}
        onValue={(value) => {
          setCustom(value === 'custom');
          const kept = value === 'custom' ? { since, until } : { since: undefined, until: undefined };
          onChange({ last: isPeriod(value) ? value : undefined, ...kept });
        }}
      />
      {is_custom && !isPeriod(last) && (
        <>
          <When label="From" value={since} onChange={(since) => change({ since })} />
          <When label="To" value={until} onChange={(until) => change({ until })} />
        </>
      )}
    </>
  );
}

/** While a year is typed, each digit already makes a valid year. */
const TYPING_MS = 400;

function When({
  label,
  value = '',
  onChange,
}: {
  label: string;
  value?: string | undefined;
  onChange: (value: string | undefined) => void;
}) {
  const id = useId();
  const [text, setText] = useTyped(localTime(value), (next) => onChange(next || undefined), TYPING_MS);
  return (
    <span className="flex w-full items-center gap-1 sm:w-auto">
      <label htmlFor={id} className="w-9 shrink-0 text-muted text-sm sm:w-auto">
        {label}
      </label>
      <input
        id={id}
        type="datetime-local"
        // The API accepts no years with more than four digits.
        max="9999-12-31T23:59"
        value={text}
        onChange={(event) => setText(event.target.value)}
        className={`${inputClass} sm:w-44`}
      />
    </span>
  );
}

/** Converts an instant or a day from the URL to local time for the control. */
function localTime(value: string): string {
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/.test(value)) return value;
  const time = new Date(/^\d{4}-\d\d-\d\d$/.test(value) ? `${value}T00:00` : value);
  if (Number.isNaN(time.getTime())) return '';
  const pad = (n: number) => String(n).padStart(2, '0');
  return `${time.getFullYear()}-${pad(time.getMonth() + 1)}-${pad(time.getDate())}T${pad(time.getHours())}:${pad(time.getMinutes())}`;
}
