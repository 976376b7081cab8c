/** The filter of the audit log, which the page's URL holds. */
import { useQuery } from '@tanstack/react-query';
import { ListFilter, X } from 'lucide-react';
import { useEffect, useId, useState } from 'react';
import { auditEvents } from '../../../features/audit/rules/audit.ts';
import { usersQuery } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { cx } from '../../ui/cx.ts';
import { inputClass } from '../../ui/field.tsx';
import { Select } from '../../ui/select.tsx';
import type { AuditSearch } from './records.ts';

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
        <AgentIdField
          label="Agent ID"
          value={search.agent_id ?? ''}
          onChange={(agent_id) => onChange({ agent_id: agent_id || undefined })}
        />
        <When label="From" value={search.since} onChange={(since) => onChange({ since })} />
        <When label="To" value={search.until} onChange={(until) => onChange({ until })} />
        {filtered && (
          <Button
            variant="quiet"
            icon={<X aria-hidden />}
            onClick={() =>
              onChange({
                event: undefined,
                user_id: undefined,
                agent_id: undefined,
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

/** Applied when it loses the focus or on Enter, because an incomplete id matches nothing. */
function AgentIdField({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
}) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return (
    <input
      aria-label={label}
      placeholder={label}
      spellCheck={false}
      autoComplete="off"
      value={text}
      onChange={(event) => setText(event.target.value)}
      onBlur={() => text.trim() !== value && onChange(text.trim())}
      onKeyDown={(event) => event.key === 'Enter' && onChange(text.trim())}
      className={`${inputClass} sm:w-44`}
    />
  );
}

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
  return (
    <span className="flex w-full items-center gap-1 sm:w-auto">
      <label htmlFor={id} className="w-9 shrink-0 text-muted text-sm sm:w-auto">
        {label}
      </label>
      <input
        id={id}
        type="datetime-local"
        value={localTime(value)}
        onChange={(event) => onChange(event.target.value || undefined)}
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
