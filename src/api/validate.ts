/**
 * Validates input against a route's schemas. Reports the first error only: the contract's fixed message if it has one, else
 * `<field path> <what is wrong>`. List positions are written as `[]`.
 */
import type { z } from 'zod';
import { invalidInput, isFixedMessage } from './errors.ts';
import { fieldPath } from './field-path.ts';
import { withinLimits } from './within-limits.ts';

/**
 * Returns the validated value or throws a 400 `Problem`. `subject` names the value in messages (`body must be an object`);
 * `path` is its location if it is part of something else.
 */
export function validate<S extends z.ZodType>(
  schema: S,
  input: unknown,
  subject: string,
  path: readonly PropertyKey[] = [],
): z.output<S> {
  const result = schema.safeParse(withinLimits(schema, input), { reportInput: true });
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const message = issueMessage(issue);
  throw invalidInput(
    isFixedMessage(message) ? message : `${fieldPath([...path, ...issue.path]) || subject} ${message}`,
  );
}

/** Matches Zod's default messages. Messages from a schema are used unchanged. */
const ZOD_MESSAGES = /^(Invalid|Too |Unrecognized)/;

function issueMessage(issue: z.core.$ZodIssue): string {
  if (!ZOD_MESSAGES.test(issue.message)) return issue.message;
  if ('input' in issue && issue.input === undefined && issue.code !== 'custom') return 'is required';
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${nouns[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return `must be one of: ${issue.values.map(String).join(', ')}`;
    case 'too_small':
      return sizeMessage(issue.origin, 'least', Number(issue.minimum));
    case 'too_big':
      return sizeMessage(issue.origin, 'most', Number(issue.maximum));
    case 'invalid_format':
      return issue.format === 'datetime' ? 'must be an RFC 3339 time' : 'has the wrong form';
    case 'invalid_key':
      return issue.issues[0] ? issueMessage(issue.issues[0]) : 'is not valid';
    default:
      return 'is not valid';
  }
}

function sizeMessage(origin: string, edge: 'least' | 'most', bound: number): string {
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
