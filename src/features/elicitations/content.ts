/**
 * Validates a person's input against the agent's form, with Zod schemas that are built from its fields. `z.fromJSONSchema`
 * is not suitable: it reads a missing field named `constructor` from the object's prototype, rejects times with an offset,
 * and runs the agent's `pattern`, whose backtracking could block the service. So patterns are not run here; the agent checks
 * its own.
 */
import { z } from 'zod';
import { fieldPath } from '../../api/field-path.ts';
import { validate } from '../../api/validate.ts';
import { invalid } from '../../core/problem.ts';
import { limits } from './limits.ts';
import type { ElicitationField, ElicitationForm } from './rules.ts';

/** The content to send. Throws a 400 that names the first invalid field and the reason. */
export function checkedContent(
  form: ElicitationForm,
  content: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const known = new Set(form.fields.map(({ name }) => name));
  const unknown = Object.keys(content).find((name) => !known.has(name));
  if (unknown !== undefined) throw invalid(`${fieldPath(['content', unknown])} is not a field of the form`);
  const entries = form.fields.flatMap((field): [string, unknown][] => {
    const { name, required } = field;
    const schema = toSchema(field);
    const entry = Object.hasOwn(content, name) ? content[name] : undefined;
    const value = validate(required ? schema : schema.optional(), entry, '', ['content', name]);
    return value === undefined ? [] : [[name, value]];
  });
  const checked = Object.fromEntries(entries);
  const max = limits.elicitation_content_chars_max;
  if (JSON.stringify(checked).length > max)
    throw invalid(`content must be at most ${max} characters as JSON`);
  return checked;
}

function toSchema(field: ElicitationField): z.ZodType {
  const { type, choices } = field;
  const min = field.min ?? Number.NEGATIVE_INFINITY;
  const max = field.max ?? Number.POSITIVE_INFINITY;
  const values = new Set(choices.map(({ value }) => value));
  const choice = z.string().refine((value) => values.has(value), { error: 'must be one of the choices' });
  switch (type) {
    case 'text':
      return formats[field.format ?? 'none']
        .refine((text) => !text.includes('\0'), { error: 'must not contain NUL' })
        .refine((text) => countChars(text) >= min, { error: `must be at least ${min} characters` })
        .refine((text) => countChars(text) <= max, { error: `must be at most ${max} characters` });
    case 'number':
      return z.number().min(min).max(max);
    case 'integer':
      return z.int().min(min).max(max);
    case 'boolean':
      return z.boolean();
    case 'choice':
      return choice;
    case 'choices':
      return z
        .array(choice)
        .refine((list) => list.length >= min, { error: `must have at least ${min} entries` })
        .refine((list) => list.length <= max, { error: `must have at most ${max} entries` })
        .refine((list) => new Set(list).size === list.length, { error: 'must not name a choice twice' });
  }
}

const formats = {
  none: z.string(),
  email: z.email({ error: 'must be an email address' }),
  uri: z.url({ error: 'must be a URL' }),
  date: z.iso.date({ error: 'must be a date such as 2026-01-31' }),
  'date-time': z.iso.datetime({ offset: true, error: 'must be an RFC 3339 time' }),
};

/** JSON Schema counts code points. */
function countChars(text: string): number {
  return [...text].length;
}
