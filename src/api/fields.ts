/** Schemas that many routes share: names, times, flags and lists. */
import { z } from 'zod';
import { limits } from '../base/limits.ts';
import { NODE_ID, NODE_ID_RULE } from '../core/node.ts';
import { problems } from '../core/problem.ts';
import { countWords } from '../core/words.ts';
import { USERNAME } from '../features/accounts/rules.ts';
import { limits as apiLimits } from './limits.ts';

export const id = z.string();
export const time = z.iso.datetime({ precision: 3 }).meta({ description: 'RFC 3339, UTC, milliseconds' });

/** A string of at most `chars_max` characters, without NUL. */
export function bounded(chars_max: number) {
  return z
    .string()
    .max(chars_max, { error: `must be at most ${chars_max} characters` })
    .refine((text) => !text.includes('\0'), { error: 'must not contain NUL' });
}

/** Words to search for. */
export function searchText() {
  const { search_words_max } = apiLimits;
  return bounded(limits.search_chars_max).refine((text) => countWords(text) <= search_words_max, {
    error: `must have at most ${search_words_max} words`,
  });
}

/** Describes a `searchText`. */
export const SEARCH_TEXT = `Words, and phrases in quotation marks; all must occur. At most ${apiLimits.search_words_max} words.`;

/** An object whose caller chooses the names, at most `items_max` of them. */
export function dictionary<Key extends z.core.$ZodRecordKey, Value extends z.ZodType>(
  key: Key,
  value: Value,
  items_max: number,
) {
  return z
    .record(key, value)
    .refine((all) => Object.keys(all).length <= items_max, {
      error: `must have at most ${items_max} entries`,
    })
    .meta({ maxProperties: items_max });
}

/** A human-readable name: one line, no control characters. */
export const name = z
  .string()
  .refine((text) => text.trim() !== '', { error: 'is required' })
  .refine((text) => text.length <= limits.name_chars_max, {
    error: `must be at most ${limits.name_chars_max} characters`,
  })
  .refine((text) => !/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(text), {
    error: 'must not contain control characters',
  })
  .meta({ minLength: 1, maxLength: limits.name_chars_max });

export const username = z
  .string()
  .regex(USERNAME, { error: 'must be 1 to 64 characters from a-z, 0-9, ".", "_" and "-"' });
export const nodeId = z.string().regex(NODE_ID, { error: NODE_ID_RULE });
/** Describes an absent `node_id`. */
export const NODE_DEFAULT = 'Default: `main`; with `server.local_node = false`, the only registered node.';
export const password = bounded(limits.password_chars_max);

/** An object that another specification defines: unknown fields are accepted and dropped. */
export function foreign<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.object(shape).meta({ foreign: true });
}

/** A number in a query string. */
export function queryInteger(min: number, max = Number.MAX_SAFE_INTEGER) {
  const error =
    max === Number.MAX_SAFE_INTEGER
      ? `must be an integer of at least ${min}`
      : `must be an integer from ${min} to ${max}`;
  return z
    .string({ error })
    .regex(/^\d{1,16}$/, { error })
    .transform(Number)
    .refine((n) => n >= min && n <= max, { error })
    .meta({
      wire: { type: 'integer', minimum: min, ...(max < Number.MAX_SAFE_INTEGER && { maximum: max }) },
    });
}

/** `true` or `false` in a query string. */
export const queryFlag = z
  .enum(['true', 'false', '1', '0'], { error: 'must be true or false' })
  .transform((text) => text === 'true' || text === '1')
  .meta({ wire: { type: 'boolean' } });

/** A position in an event stream. A position beyond the end is valid: the stream answers with a `reset`. */
export const position = z
  .string({ error: problems.invalidLastEventId().message })
  .regex(/^\d+$/, { error: problems.invalidLastEventId().message })
  .transform((text) => Math.min(Number(text), Number.MAX_SAFE_INTEGER))
  .meta({ wire: { type: 'integer', minimum: 0 } });

export const pageQuery = {
  limit: queryInteger(1, limits.page_items_max)
    .optional()
    .meta({ description: 'Page size. With `limit` or `cursor` the answer is `{items, next_cursor?}`.' }),
  cursor: z
    .string({ error: problems.invalidCursor().message })
    .max(512, { error: problems.invalidCursor().message })
    .optional()
    .meta({ description: 'The `next_cursor` of the previous page.' }),
};

/** A plain array, or a page of it if the request asked for one. */
export function list<T extends z.ZodType>(item: T) {
  return z.union([z.array(item), z.object({ items: z.array(item), next_cursor: z.string().optional() })]);
}

/** A list that is always short. Its type is the plain array, because svc's own clients never ask for pages of it. */
export function shortList<T extends z.ZodType>(item: T): z.ZodArray<T> {
  return list(item) as unknown as z.ZodArray<T>;
}
