/**
 * Malformed JSON values: some almost match a schema, others are arbitrary. An object is a list of fields, so that it can contain
 * a key twice, or a key that is special in JavaScript.
 */
import { z } from 'zod';
import type { Rng } from './rng.ts';

/** A JSON value to be written: a plain value, an ordered list of fields, or raw JSON text. */
export type Malformed = null | boolean | number | string | Malformed[] | Fields | Raw;

export class Fields {
  readonly entries: [name: string, value: Malformed][];
  constructor(entries: [string, Malformed][]) {
    this.entries = entries;
  }
}

export class Raw {
  readonly json: string;
  constructor(json: string) {
    this.json = json;
  }
}

export function jsonOf(value: Malformed): string {
  if (value instanceof Raw) return value.json;
  if (Array.isArray(value)) return `[${value.map(jsonOf).join(',')}]`;
  if (value instanceof Fields) {
    return `{${value.entries.map(([name, item]) => `${JSON.stringify(name)}:${jsonOf(item)}`).join(',')}}`;
  }
  return JSON.stringify(value);
}

const TEXTS = [
  '',
  ' ',
  '\0',
  'a\0b',
  '..',
  '../..',
  '/',
  '//',
  '-x',
  '--upload-pack=x',
  '__proto__',
  'constructor',
  'null',
  'undefined',
  '-1',
  '0',
  '1',
  '01',
  '1e99',
  'NaN',
  '9007199254740993',
  '9223372036854775808',
  '\ud800',
  '\udc00\ud800',
  'a\ud83d',
  '\u202eevil',
  '\ufeffx',
  '\u2028',
  '\x1b]52;c;YQ==\x07',
  '\r\nX-A: b',
  '<script>alert(1)</script>',
  '%00',
  '%2e%2e%2f',
  '%',
  "' OR 1=1 --",
  '"',
  '\\',
  '*',
  'a*"b',
  'NEAR(',
  '😀'.repeat(70),
  'é'.normalize('NFD'),
  'a'.repeat(256),
  'a'.repeat(5_000),
  '2026-11-22T00:00:00Z',
  '2026-02-30T25:61:61Z',
  '+275760-09-13T00:00:00.001Z',
  '* * * * *',
  'Europe/Berlin',
  'eyJpZCI6MX0',
];
const NUMBERS = [
  0,
  -0,
  -1,
  1,
  1.5,
  60,
  2 ** 31,
  2 ** 32,
  2 ** 53 - 1,
  2 ** 53,
  2 ** 63,
  -(2 ** 63),
  1e308,
  5e-324,
];
const DEEP = 10_000;
const RAWS = [
  '1e999',
  '-1e999',
  '-0',
  '9007199254740993',
  '0.1e-400',
  '"\\ud800"',
  '"\\u0000"',
  '{"__proto__":{"role":"root"}}',
  '{"constructor":{"prototype":{"role":"root"}}}',
  `${'['.repeat(DEEP)}${']'.repeat(DEEP)}`,
  `${'{"a":'.repeat(DEEP)}1${'}'.repeat(DEEP)}`,
  `${'['.repeat(63)}${']'.repeat(63)}`,
  `[${'0,'.repeat(5_000)}0]`,
  `"${'\\u00e9'.repeat(30_000)}"`,
];

export function text(rng: Rng): string {
  if (rng.chance(0.6)) return rng.pick(TEXTS);
  const codes = rng.some(30, () => (rng.chance(0.7) ? 32 + rng.below(95) : rng.below(0x10000)));
  return String.fromCharCode(...codes);
}

/** An arbitrary JSON value. */
export function anything(rng: Rng, levels = 3): Malformed {
  const kind = rng.below(levels > 0 ? 9 : 6);
  if (kind === 0) return null;
  if (kind === 1) return rng.chance(0.5);
  if (kind === 2) return rng.pick(NUMBERS);
  if (kind === 3) return new Raw(rng.pick(RAWS));
  if (kind < 6) return text(rng);
  if (kind === 6) return rng.some(4, () => anything(rng, levels - 1));
  return new Fields(rng.some(4, () => [text(rng), anything(rng, levels - 1)]));
}

/** Returns a valid value for a field with this name; undefined if none is known. */
export type KnownValues = (name: string, rng: Rng) => Malformed | undefined;

type Json = { [key: string]: unknown };

/** Converts a Zod schema to a JSON schema. */
export function shapeOf(schema: z.ZodType): Shape {
  const root = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return { root, schema: root };
}

/** A JSON schema, and the document to which its references point. */
export interface Shape {
  root: unknown;
  schema: unknown;
}

/**
 * Generates a value that almost matches a schema. `error_rate`: the share of values that are arbitrary, and of objects with an
 * extra, missing or duplicate field.
 */
export function almostValid(rng: Rng, shape: Shape, values: KnownValues, error_rate: number): Malformed {
  const root = shape.root as Json;
  const make = (part: unknown, name: string, levels: number): Malformed => {
    const schema = resolve(part, root);
    if (rng.chance(error_rate) || levels > 12) return arbitrary(rng, name);
    const known = values(name, rng);
    if (known !== undefined) return known;
    if ('const' in schema) return plain(schema.const);
    if (Array.isArray(schema.enum)) return plain(rng.pick(schema.enum));
    const choices = (schema.anyOf ?? schema.oneOf) as unknown[] | undefined;
    if (choices) return make(rng.pick(choices), name, levels);
    if (Array.isArray(schema.allOf)) return make(schema.allOf[0], name, levels);
    const type = Array.isArray(schema.type) ? rng.pick(schema.type) : schema.type;
    switch (type) {
      case 'object':
        return object(schema, levels);
      case 'array':
        return rng.some(3, () => make(schema.items ?? {}, name, levels + 1));
      case 'string':
        return rng.chance(0.7) ? `w${rng.below(5)}` : text(rng);
      case 'integer':
        return Number(schema.minimum ?? 0) + rng.below(5);
      case 'number':
        return rng.next() * 10;
      case 'boolean':
        return rng.chance(0.5);
      case 'null':
        return null;
      default:
        return anything(rng);
    }
  };
  const object = (schema: Json, levels: number): Fields => {
    const required = (schema.required ?? []) as string[];
    const entries: [string, Malformed][] = [];
    for (const [name, inner] of Object.entries((schema.properties ?? {}) as Json)) {
      const included = required.includes(name) ? !rng.chance(error_rate) : rng.chance(0.4);
      if (included) entries.push([name, make(inner, name, levels + 1)]);
    }
    const more = schema.additionalProperties;
    if (more !== undefined && more !== false && entries.length === 0) {
      for (const name of rng.some(3, () => text(rng))) entries.push([name, make(more, name, levels + 1)]);
    }
    if (rng.chance(error_rate)) entries.push([text(rng), anything(rng)]);
    if (entries.length > 0 && rng.chance(error_rate)) {
      const [name] = rng.pick(entries);
      entries.push([name, arbitrary(rng, name)]);
    }
    if (rng.chance(error_rate / 4)) entries.push(['__proto__', new Fields([['role', 'root']])]);
    return new Fields(entries);
  };
  return make(shape.schema, '', 0);
}

/** An arbitrary value, but never an arbitrary shell command. */
function arbitrary(rng: Rng, name: string): Malformed {
  return name === 'command' ? new Raw(rng.pick(RAWS)) : anything(rng);
}

function resolve(part: unknown, root: Json): Json {
  let schema = (typeof part === 'object' && part !== null ? part : {}) as Json;
  for (let steps = 0; typeof schema.$ref === 'string' && steps < 10; steps++) {
    const path = schema.$ref.replace(/^#\/?/, '').split('/').filter(Boolean);
    schema = path.reduce<Json>((inner, name) => (inner[name] ?? {}) as Json, root);
  }
  return schema;
}

function plain(value: unknown): Malformed {
  return new Raw(JSON.stringify(value));
}
