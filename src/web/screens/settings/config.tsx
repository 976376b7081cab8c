/** Every setting of the service with its origin. Live settings can be changed here. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Pencil } from 'lucide-react';
import { type FormEvent, useState } from 'react';
import { call, errorMessage } from '../../api/client.ts';
import { configQuery, type SettingRecord } from '../../api/queries.ts';
import { Button, IconButton } from '../../ui/button.tsx';
import { Field, inputClass } from '../../ui/field.tsx';
import { FilterField } from '../../ui/filter-field.tsx';
import { Select } from '../../ui/select.tsx';
import { Empty, QueryState } from '../../ui/states.tsx';
import { formatValue, getValueForm, readValue } from './config-value.ts';
import { Section } from './section.tsx';

export function Config() {
  const read = useQuery(configQuery);
  const [sought, setQuery] = useState('');
  return (
    <Section
      title="Configuration"
      about="Flags override environment variables, which override changes made here, which override the configuration file."
    >
      <FilterField label="Filter settings" placeholder="Filter" value={sought} onText={setQuery} />
      <QueryState read={read} rows={10}>
        {(settings) => {
          const text = sought.trim().toLowerCase();
          const found = settings.filter(({ key, description }) =>
            `${key} ${description}`.toLowerCase().includes(text),
          );
          if (found.length === 0)
            return <Empty title="No settings match this filter." cli="svc config show" />;
          return (
            <ul className="rounded-lg border border-line">
              {found.map((setting) => (
                <Setting key={setting.key} setting={setting} />
              ))}
            </ul>
          );
        }}
      </QueryState>
    </Section>
  );
}

function Setting({ setting }: { setting: SettingRecord }) {
  const { key, description, origin, source, live } = setting;
  const [editing, setEditing] = useState(false);
  return (
    <li className="flex flex-col gap-1 border-line px-3 py-2 not-first:border-t">
      <div className="flex items-start gap-3">
        <div className="min-w-0 flex-1">
          <h3 className="break-all font-medium font-mono text-sm">{key}</h3>
          <p className="text-muted text-sm">{description}</p>
        </div>
        {live && !editing && (
          <IconButton label={`Edit ${key}`} icon={<Pencil aria-hidden />} onClick={() => setEditing(true)} />
        )}
      </div>
      {editing ? (
        <Editing setting={setting} onDone={() => setEditing(false)} />
      ) : (
        <p className="flex flex-wrap items-baseline gap-x-3">
          <Value value={setting.value} />
          <span className="min-w-0 break-all text-muted text-sm">
            {origin}
            {source && ` · ${source}`}
          </span>
        </p>
      )}
    </li>
  );
}

function Value({ value }: { value: unknown }) {
  if (value === null || (Array.isArray(value) && value.length === 0)) {
    return <span className="text-muted">Not set</span>;
  }
  return (
    <code className="min-w-0 whitespace-pre-line break-all font-mono text-sm">{formatValue(value)}</code>
  );
}

function Editing({ setting, onDone }: { setting: SettingRecord; onDone: () => void }) {
  const { key, value, origin } = setting;
  const form = getValueForm(value);
  const [text, setText] = useState(formatValue(value));
  const queries = useQueryClient();
  const change = useMutation({
    // Null removes the live value, so that the next origin applies.
    mutationFn: (to: unknown) => call('updateConfig', { body: { [key]: to } }),
    onSuccess: (settings) => {
      queries.setQueryData(configQuery.queryKey, settings);
      onDone();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    change.mutate(readValue(text, form));
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-2">
      <Field
        label={`New value for ${key}`}
        error={change.error && errorMessage(change.error)}
        hint={form === 'list' ? 'One per line' : undefined}
      >
        {(control) => {
          if (form === 'switch') {
            const choices = ['true', 'false'].map((each) => ({ value: each, label: each }));
            return <Select {...control} choices={choices} value={text} onChange={setText} />;
          }
          const shared = {
            ...control,
            // The user has just chosen to edit this.
            autoFocus: true,
            spellCheck: false,
            autoComplete: 'off',
            value: text,
            className: `${inputClass} font-mono`,
          };
          return form === 'list' ? (
            <textarea {...shared} rows={4} onChange={(event) => setText(event.target.value)} />
          ) : (
            <input
              {...shared}
              inputMode={form === 'number' ? 'numeric' : 'text'}
              onChange={(event) => setText(event.target.value)}
            />
          );
        }}
      </Field>
      <div className="flex flex-wrap gap-2">
        <Button type="submit" variant="primary" busy={change.isPending}>
          Save
        </Button>
        {origin === 'live' && (
          <Button disabled={change.isPending} onClick={() => change.mutate(null)}>
            Reset
          </Button>
        )}
        <Button onClick={onDone}>Cancel</Button>
      </div>
    </form>
  );
}
