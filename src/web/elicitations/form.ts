/**
 * The state of an agent's form (pure): one value per field, by position, since a field may have any name. The service
 * validates; here values are only converted to the field's type.
 */
import { fieldPath } from '../../api/field-path.ts';
import type { ElicitationRecord } from '../api/queries.ts';

export type FormField = NonNullable<ElicitationRecord['form']>['fields'][number];
/** For `choice` the index of the choice, empty for none; for `choices` their indexes. */
export type FieldValue = string | boolean | readonly number[];

export function initialValue({ type, format, choices, default: preset }: FormField): FieldValue {
  switch (type) {
    case 'boolean':
      return preset === true;
    case 'choices': {
      const chosen: readonly unknown[] = Array.isArray(preset) ? preset : [];
      return choices.flatMap(({ value }, at) => (chosen.includes(value) ? at : []));
    }
    case 'choice': {
      const at = choices.findIndex(({ value }) => value === preset);
      return at < 0 ? '' : String(at);
    }
    default:
      if (format === 'date-time' && typeof preset === 'string') return localTime(preset);
      return preset === null ? '' : String(preset);
  }
}

/** The values of a stored draft. A field whose stored value does not fit it has its initial value. */
export function readValues(fields: readonly FormField[], draft: string): readonly FieldValue[] {
  let stored: unknown;
  try {
    stored = draft === '' ? [] : JSON.parse(draft);
  } catch {
    // Malformed: ignore it.
  }
  return fields.map((field, at) => {
    const value: unknown = Array.isArray(stored) ? stored[at] : undefined;
    return fits(field, value) ? value : initialValue(field);
  });
}

function fits({ type, choices }: FormField, value: unknown): value is FieldValue {
  const isChoice = (at: unknown) => typeof at === 'number' && at in choices;
  if (type === 'choices') return Array.isArray(value) && value.every(isChoice);
  if (type === 'choice') return value === '' || (typeof value === 'string' && isChoice(Number(value)));
  return typeof value === (type === 'boolean' ? 'boolean' : 'string');
}

/** The content to send; an empty optional field is omitted. */
export function buildContent(
  fields: readonly FormField[],
  values: readonly FieldValue[],
): Record<string, unknown> {
  const entries = fields.flatMap((field, at): [string, unknown][] => {
    const value = entered(field, values[at]!);
    return value === undefined ? [] : [[field.name, value]];
  });
  return Object.fromEntries(entries);
}

function entered({ type, format, choices }: FormField, value: FieldValue): unknown {
  if (typeof value === 'boolean') return value;
  if (typeof value !== 'string') {
    return value.length === 0 ? undefined : value.map((at) => choices[at]!.value);
  }
  if (value === '') return undefined;
  if (type === 'choice') return choices[Number(value)]!.value;
  if (type === 'number' || type === 'integer') return Number(value);
  return format === 'date-time' ? new Date(value).toISOString() : value;
}

/** For a control whose text the browser cannot convert to a value, so that its value is empty. */
export function unreadableProblem({ type }: FormField): string {
  return type === 'number' || type === 'integer' ? 'is not a number' : 'is incomplete';
}

/** The service's error for one field, without its path; null if the error is about something else. */
export function fieldProblem({ name }: FormField, message: string): string | null {
  const path = fieldPath(['content', name]);
  for (const start of [`${path} `, `${path}[] `]) {
    if (message.startsWith(start)) return message.slice(start.length);
  }
  return null;
}

/** The rules for a value, for people. */
export function describeRules({ type, format, min, max, pattern }: FormField): string {
  const noun = { text: ' character', choices: ' choice' }[type as string] ?? '';
  const unit = noun === '' || (max ?? min) === 1 ? noun : `${noun}s`;
  const bounds =
    min !== null && max !== null
      ? `${min} to ${max}${unit}`
      : min !== null
        ? `at least ${min}${unit}`
        : max !== null
          ? `at most ${max}${unit}`
          : '';
  const kinds: Partial<Record<FormField['type'], string>> = { integer: 'whole number' };
  const of_format = format === 'uri' ? 'URL' : format === 'email' ? 'email address' : '';
  const matches = pattern === null ? '' : `matches ${pattern}`;
  return [kinds[type] ?? '', of_format, bounds, matches].filter(Boolean).join(', ');
}

/** For a control without a time zone; empty if the text is not a time, or not one that the control can show. */
function localTime(text: string): string {
  const time = new Date(text);
  // Null, instead of an exception, for what is not a time, or is none in this time zone.
  const local = new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toJSON() as string | null;
  return /^\d{4}-/.test(local ?? '') ? local!.slice(0, 19) : '';
}
