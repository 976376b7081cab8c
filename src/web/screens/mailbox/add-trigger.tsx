/** The form that adds a time trigger to a run. Its fields are a draft until the trigger is added. */
import { type RefObject, useEffect, useRef, useState } from 'react';
import { useAct } from '../../api/act.ts';
import type { LastAttempt } from '../../api/act-key.ts';
import { call } from '../../api/client.ts';
import type { RunRecord } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { Combobox } from '../../ui/combobox.tsx';
import { useFields } from '../../ui/drafts.ts';
import { Field, inputClass, TextField } from '../../ui/field.tsx';
import { assignErrorToField } from '../../ui/field-errors.ts';
import { useOnline } from '../../ui/online.ts';
import { Segmented } from '../../ui/segmented.tsx';
import { Select } from '../../ui/select.tsx';
import { ActionError } from '../../ui/states.tsx';
import { Until, useNow } from '../../ui/time.tsx';
import { actorName } from './actors.ts';
import {
  type FieldErrors,
  type Kind,
  type NewSchedule,
  readFields,
  type TriggerFields,
  type Unit,
  unitSeconds,
} from './trigger-fields.ts';
import { useRefetchTriggers } from './trigger-list.tsx';

interface AddTriggerProps {
  run: RunRecord;
  /** The actors that the user may act as; at least one. */
  actors: readonly string[];
  onAdded: () => void;
}

interface FieldsProps {
  fields: TriggerFields;
  setFields: (next: Partial<TriggerFields>) => void;
  errors: FieldErrors;
}

const kinds: { value: Kind; label: string }[] = [
  { value: 'once', label: 'Once' },
  { value: 'every', label: 'At an interval' },
  { value: 'cron', label: 'Cron' },
];

export function AddTrigger({ run, actors, onAdded }: AddTriggerProps) {
  const now = useNow();
  const online = useOnline();
  const [fields, setFields, last] = useTriggerFields(run, actors);
  const { errors: found, schedule, times } = readFields(fields, now);
  // Errors are shown after the first attempt to save.
  const [attempts, setAttempts] = useState(0);
  const add = useAddTrigger(run, last, () => {
    setFields(null);
    onAdded();
  });
  const { rest, ...refused } = serverErrors(add.error);
  const errors = { ...(attempts > 0 && found), ...refused };
  const form = useFocusOnError(attempts);
  const submit = () => {
    if (add.isPending || !online) return;
    setAttempts(attempts + 1);
    const { actor_id, text } = fields;
    if (schedule && Object.keys(found).length === 0) add.mutate({ actor_id, schedule, text });
  };
  return (
    <form
      ref={form}
      noValidate
      className="flex flex-col gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <Field label="Recipient">
        {(control) => (
          <Select
            {...control}
            value={fields.actor_id}
            onChange={(actor_id) => setFields({ actor_id })}
            choices={actors.map((value) => ({ value, label: actorName(value) }))}
          />
        )}
      </Field>
      <Segmented
        label="How often"
        segments={kinds}
        value={fields.kind}
        onValue={(kind) => setFields({ kind })}
      />
      <TimeFields fields={fields} setFields={setFields} errors={errors} />
      <NextTimes times={times} />
      <Field label="Message" error={errors.text}>
        {(control) => (
          <textarea
            {...control}
            rows={3}
            value={fields.text}
            onChange={(event) => setFields({ text: event.target.value })}
            className={`${inputClass} text-prose`}
          />
        )}
      </Field>
      {rest !== undefined && <ActionError error={rest} />}
      <div className="flex justify-end">
        <Button
          type="submit"
          variant="primary"
          busy={add.isPending}
          disabled={!online}
          title={online ? undefined : 'You are offline'}
        >
          {add.isPending ? 'Adding…' : 'Add trigger'}
        </Button>
      </div>
    </form>
  );
}

function useTriggerFields(run: RunRecord, actors: readonly string[]) {
  const [fields, setFields, last] = useFields<TriggerFields>(`trigger.${run.id}`, {
    actor_id: actors[0]!,
    kind: 'once',
    at: '',
    every: '15',
    unit: 'minutes',
    cron: '0 9 * * 1-5',
    timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    text: '',
  });
  // The actor of a draft may no longer take part.
  const actor_id = actors.includes(fields.actor_id) ? fields.actor_id : actors[0]!;
  return [{ ...fields, actor_id }, setFields, last] as const;
}

function useAddTrigger({ id: run_id }: RunRecord, last: LastAttempt, onAdded: () => void) {
  const refetch = useRefetchTriggers(run_id);
  return useAct(
    (
      { actor_id, schedule, text }: { actor_id: string; schedule: NewSchedule; text: string },
      idempotency_key,
    ) => {
      const body = { run_id, ...schedule, payload: { text } };
      return call('setTrigger', { params: { actor_id }, body, idempotency_key });
    },
    () => {
      refetch();
      onAdded();
    },
    last,
  );
}

/** What the service found wrong although the form did not, by field; `rest`: with the trigger as a whole. */
function serverErrors(error: unknown): FieldErrors & { rest?: string } {
  const { every_seconds, payload, ...own } = assignErrorToField(error, [
    'at',
    'every_seconds',
    'cron',
    'timezone',
    'payload',
  ]);
  return {
    ...own,
    ...(every_seconds !== undefined && { every: every_seconds }),
    ...(payload !== undefined && { text: payload }),
  };
}

/** Moves the focus to the first invalid field after each attempt. */
function useFocusOnError(attempts: number): RefObject<HTMLFormElement | null> {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (attempts > 0) form.current?.querySelector<HTMLElement>('[aria-invalid]')?.focus();
  }, [attempts]);
  return form;
}

function TimeFields({ fields, setFields, errors }: FieldsProps) {
  if (fields.kind === 'every') return <IntervalFields {...{ fields, setFields, errors }} />;
  return (
    <div className="grid gap-3 sm:grid-cols-2">
      {fields.kind === 'once' ? (
        <TextField
          type="datetime-local"
          // Allows seconds, which the browser shows only if there are any.
          step="any"
          label="Time"
          error={errors.at}
          value={fields.at}
          onText={(at) => setFields({ at })}
        />
      ) : (
        <TextField
          mono
          label="Cron pattern"
          hint="Minute, hour, day, month, weekday"
          spellCheck={false}
          autoComplete="off"
          autoCapitalize="off"
          error={errors.cron}
          value={fields.cron}
          onText={(cron) => setFields({ cron })}
        />
      )}
      <Field label="Time zone" error={errors.timezone}>
        {(control) => (
          <Combobox
            control={control}
            label="Time zones"
            value={fields.timezone}
            options={zones()}
            onValue={(timezone) => setFields({ timezone })}
          />
        )}
      </Field>
    </div>
  );
}

function IntervalFields({ fields, setFields, errors }: FieldsProps) {
  return (
    <div className="grid grid-cols-2 gap-3">
      <TextField
        inputMode="numeric"
        label="Every"
        error={errors.every}
        value={fields.every}
        onText={(every) => setFields({ every })}
      />
      <Field label="Unit">
        {(control) => (
          <Select
            {...control}
            value={fields.unit}
            onChange={(unit) => setFields({ unit: unit as Unit })}
            choices={Object.keys(unitSeconds).map((value) => ({ value, label: value }))}
          />
        )}
      </Field>
    </div>
  );
}

let known_zones: { value: string; label: string }[] | null = null;

function zones() {
  known_zones ??= ['UTC', ...Intl.supportedValuesOf('timeZone').filter((name) => name !== 'UTC')].map(
    (value) => ({ value, label: value }),
  );
  return known_zones;
}

/** The first times of the trigger, in the user's own zone. */
function NextTimes({ times }: { times: readonly number[] }) {
  if (times.length === 0) return null;
  return (
    <section aria-label="Next times" className="rounded-md bg-surface px-3 py-2">
      <h3 className="text-muted text-sm">{times.length === 1 ? 'Fires at' : 'Fires first at'}</h3>
      <ol>
        {times.map((time) => (
          <li key={time}>
            {dateTime().format(time)}{' '}
            <span className="text-muted">
              <Until at={time} />
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

let date_time: Intl.DateTimeFormat | null = null;

/** With the zone, because the trigger may have a different one. */
function dateTime(): Intl.DateTimeFormat {
  date_time ??= new Intl.DateTimeFormat(undefined, {
    ...{ weekday: 'short', month: 'short', day: 'numeric', year: 'numeric' },
    ...{ hour: 'numeric', minute: '2-digit', second: '2-digit', timeZoneName: 'short' },
  });
  return date_time;
}
