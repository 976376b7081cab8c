/**
 * Cuts lists and objects that have more entries than their schema allows, before anything looks at each of them: a body of
 * 1 MiB can have 80,000 entries, and to check them all takes seconds. One entry too many is left, so that validation
 * refuses the value with the message that it has for that.
 */
import { z } from 'zod';

/** The value itself where nothing is over its limit, otherwise a copy. Alternatives (`z.union`) are left as they are. */
export function withinLimits(schema: z.ZodType, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const inner = unwrapSchema(schema);
  if (Array.isArray(value)) {
    if (!(inner instanceof z.ZodArray)) return value;
    const max = inner._zod.bag.maximum;
    const entries = typeof max === 'number' && value.length > max ? value.slice(0, max + 1) : value;
    const items = entries.map((item) => withinLimits(inner.element as z.ZodType, item));
    return items.some((item, n) => item !== entries[n]) ? items : entries;
  }
  const fields = value as Record<string, unknown>;
  if (inner instanceof z.ZodRecord) {
    const max = inner.meta()?.maxProperties;
    const keys = Object.keys(fields);
    if (typeof max !== 'number' || keys.length <= max) return value;
    return Object.fromEntries(keys.slice(0, max + 1).map((key) => [key, fields[key]]));
  }
  if (!(inner instanceof z.ZodObject)) return value;
  const changed = Object.entries(inner.shape).flatMap(([key, field]) => {
    if (!Object.hasOwn(fields, key)) return [];
    const cut = withinLimits(field as z.ZodType, fields[key]);
    return cut === fields[key] ? [] : [[key, cut] as const];
  });
  return changed.length === 0 ? value : { ...fields, ...Object.fromEntries(changed) };
}

function unwrapSchema(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodPipe) return unwrapSchema(schema.in as z.ZodType);
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault) {
    return unwrapSchema(schema.unwrap() as z.ZodType);
  }
  return schema;
}
