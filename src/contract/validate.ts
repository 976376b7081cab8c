/**
 * Checks input against a route's schemas. The first problem only, in the contract's words: its exact message where it
 * has one, else `<field path> <what is wrong>`, list positions written `[]` as the contract does.
 */
import type { z } from 'zod';
import { invalidInput, isFixedMessage } from './errors.ts';

/** The validated value, or a 400 `Problem`. `whole` names the thing itself in messages (`body must be an object`). */
export function validate<S extends z.ZodType>(schema: S, input: unknown, whole: string): z.output<S> {
  const result = schema.safeParse(input, { reportInput: true });
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const words = wrong(issue);
  throw invalidInput(isFixedMessage(words) ? words : `${fieldPath(issue.path) || whole} ${words}`);
}

/** A field as messages name it: `spec.members[].member_id`. */
export function fieldPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[]` : `${text && `${text}.`}${inLine(String(part))}`),
    '',
  );
}

/** A client's own key, short and without what a terminal would obey. */
function inLine(key: string): string {
  return key.slice(0, 64).replace(/[\u0000-\u001f\u007f-\u009f]/g, '?');
}

/** Zod's own words all begin like this; words given in a schema are ours and are taken as they are. */
const ZODS_WORDS = /^(Invalid|Too |Unrecognized)/;

function wrong(issue: z.core.$ZodIssue): string {
  if (!ZODS_WORDS.test(issue.message)) return issue.message;
  if ('input' in issue && issue.input === undefined && issue.code !== 'custom') return 'is required';
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${nouns[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return `must be one of: ${issue.values.map(String).join(', ')}`;
    case 'too_small':
      return sized(issue.origin, 'least', Number(issue.minimum));
    case 'too_big':
      return sized(issue.origin, 'most', Number(issue.maximum));
    case 'invalid_format':
      return issue.format === 'datetime' ? 'must be an RFC 3339 time' : 'has the wrong form';
    case 'invalid_key':
      return issue.issues[0] ? wrong(issue.issues[0]) : 'is not valid';
    default:
      return 'is not valid';
  }
}

function sized(origin: string, edge: 'least' | 'most', bound: number): string {
  if (origin === 'string') return `must be at ${edge} ${bound} characters`;
  if (origin === 'array' || origin === 'record') return `must have at ${edge} ${bound} entries`;
  return `must be at ${edge} ${bound}`;
}

const nouns: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
  null: 'null',
};
