/**
 * Finds the fields of a request that its route does not know, by walking the route's Zod schema along with the value.
 * Objects that allow any field (records, loose and foreign objects) have no unknown fields.
 */
import { z } from 'zod';
import { limits } from './limits.ts';

type FieldPath = readonly PropertyKey[];

/** The field that holds the version that an update is based on. It changes nothing. */
const PRECONDITION = 'version';

/**
 * Paths of the unknown fields in the order of the value; list items share paths. Returns at most
 * `limits.ignored_fields_max` + 1 paths, so that callers can see that there are more.
 */
export function unknownFields(schema: z.ZodType, value: unknown): FieldPath[] {
  // Most requests have no body or no query, and looking at the schema takes 1 µs.
  if (isObject(value) && Object.keys(value).length === 0) return [];
  const found = new Map<string, FieldPath>();
  walk(schema, value, [], found);
  return [...found.values()];
}

/** Whether an update has no field that changes something. False if the value is not an object: validation reports that. */
export function changesNothing(schema: z.ZodType, value: unknown): boolean {
  if (!isObject(value)) return false;
  const unwrapped = unwrapSchema(schema, value);
  if (!(unwrapped instanceof z.ZodObject)) return Object.keys(value).length === 0;
  return !Object.keys(value).some((key) => key !== PRECONDITION && Object.hasOwn(unwrapped.shape, key));
}

/**
 * The value of `X-Ignored-Fields`: paths separated by commas. Names are cut to 64 characters and percent-encoded except for
 * letters, digits and `-_.!~*'()`. A final `...` means that there are more.
 *
 * @param fields paths in the body
 * @param parameters names of query parameters, shown as `?name`
 */
export function ignoredFieldsHeader(fields: readonly FieldPath[], parameters: readonly string[]): string {
  const names = [...fields.map(formatPath), ...parameters.map((parameter) => `?${encoded(parameter)}`)];
  const shown = names.slice(0, limits.ignored_fields_max);
  return (shown.length < names.length ? [...shown, '...'] : shown).join(', ');
}

function formatPath(path: FieldPath): string {
  return path
    .map((part, at) => (typeof part === 'number' ? '[]' : (at > 0 ? '.' : '') + encoded(String(part))))
    .join('');
}

function encoded(name: string): string {
  return encodeURIComponent(name.slice(0, limits.ignored_field_chars_max).toWellFormed());
}

function walk(schema: z.ZodType, value: unknown, path: FieldPath, found: Map<string, FieldPath>): void {
  if (found.size > limits.ignored_fields_max || typeof value !== 'object' || value === null) return;
  const unwrapped = unwrapSchema(schema, value);
  if (unwrapped instanceof z.ZodArray && Array.isArray(value)) {
    for (const item of value) walk(unwrapped.element as z.ZodType, item, [...path, 0], found);
  } else if (unwrapped instanceof z.ZodRecord && isObject(value)) {
    for (const [key, item] of Object.entries(value))
      walk(unwrapped.valueType as z.ZodType, item, [...path, key], found);
  } else if (unwrapped instanceof z.ZodObject && isObject(value)) {
    for (const [key, item] of Object.entries(value)) {
      const field_path = [...path, key];
      if (Object.hasOwn(unwrapped.shape, key))
        walk(unwrapped.shape[key] as z.ZodType, item, field_path, found);
      else if (!allowsUnknown(unwrapped) && found.size <= limits.ignored_fields_max)
        found.set(formatPath(field_path), field_path);
    }
  }
}

/** Unwraps defaults, transforms and unions to the schema that has the fields of the value. */
function unwrapSchema(schema: z.ZodType, value: unknown): z.ZodType {
  if (schema instanceof z.ZodPipe) return unwrapSchema(schema.in as z.ZodType, value);
  if (schema instanceof z.ZodUnion) {
    const options = schema.options as z.ZodType[];
    const taken = options.find((option) => option.safeParse(value).success);
    return taken ? unwrapSchema(taken, value) : schema;
  }
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault) {
    return unwrapSchema(schema.unwrap() as z.ZodType, value);
  }
  return schema;
}

/** Whether the object allows any field: loose, or defined by another specification. */
function allowsUnknown(unwrapped: z.ZodObject): boolean {
  return unwrapped.def.catchall !== undefined || unwrapped.meta()?.foreign === true;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
