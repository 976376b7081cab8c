/**
 * Values that a service would rather not get: JSON that is nearly what a schema asks for, and JSON that nobody asks for. An
 * object is a list of fields, so that a key may be there twice, or be one that JavaScript takes for something else.
 */
import { z } from 'zod';
import type { Dice } from './dice.ts';

/** JSON as it is written down: a value of its own kind, fields in order, or a piece of text that is taken as it is. */
export type Nonsense = null | boolean | number | string | Nonsense[] | Fields | Raw;

export class Fields {
  readonly entries: [name: string, value: Nonsense][];
  constructor(entries: [string, Nonsense][]) {
    this.entries = entries;
  }
}

export class Raw {
  readonly json: string;
  constructor(json: string) {
    this.json = json;
  }
}

export function jsonOf(value: Nonsense): string {
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

export function text(dice: Dice): string {
  if (dice.chance(0.6)) return dice.pick(TEXTS);
  const codes = dice.some(30, () => (dice.chance(0.7) ? 32 + dice.below(95) : dice.below(0x10000)));
  return String.fromCharCode(...codes);
}

/** Any JSON at all. */
export function anything(dice: Dice, levels = 3): Nonsense {
  const kind = dice.below(levels > 0 ? 9 : 6);
  if (kind === 0) return null;
  if (kind === 1) return dice.chance(0.5);
  if (kind === 2) return dice.pick(NUMBERS);
  if (kind === 3) return new Raw(dice.pick(RAWS));
  if (kind < 6) return text(dice);
  if (kind === 6) return dice.some(4, () => anything(dice, levels - 1));
  return new Fields(dice.some(4, () => [text(dice), anything(dice, levels - 1)]));
}

/** What would fit at a place with this name, if anything is known of it. */
export type Words = (name: string, dice: Dice) => Nonsense | undefined;

type Json = { [key: string]: unknown };

/** A Zod schema as the plain data that values are made after. */
export function shapeOf(schema: z.ZodType): Shape {
  const root = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return { root, schema: root };
}

/** A JSON schema, and the document that its references are in. */
export interface Shape {
  root: unknown;
  schema: unknown;
}

/**
 * A value that a schema would nearly take. `wrong`: the share of places that hold something else, and of objects that have a
 * field too many, too few or twice.
 */
export function nearly(dice: Dice, shape: Shape, words: Words, wrong: number): Nonsense {
  const root = shape.root as Json;
  const make = (given: unknown, name: string, levels: number): Nonsense => {
    const at = resolve(given, root);
    if (dice.chance(wrong) || levels > 12) return odd(dice, name);
    const fitting = words(name, dice);
    if (fitting !== undefined) return fitting;
    if ('const' in at) return plain(at.const);
    if (Array.isArray(at.enum)) return plain(dice.pick(at.enum));
    const choices = (at.anyOf ?? at.oneOf) as unknown[] | undefined;
    if (choices) return make(dice.pick(choices), name, levels);
    if (Array.isArray(at.allOf)) return make(at.allOf[0], name, levels);
    const type = Array.isArray(at.type) ? dice.pick(at.type) : at.type;
    switch (type) {
      case 'object':
        return object(at, levels);
      case 'array':
        return dice.some(3, () => make(at.items ?? {}, name, levels + 1));
      case 'string':
        return dice.chance(0.7) ? `w${dice.below(5)}` : text(dice);
      case 'integer':
        return Number(at.minimum ?? 0) + dice.below(5);
      case 'number':
        return dice.next() * 10;
      case 'boolean':
        return dice.chance(0.5);
      case 'null':
        return null;
      default:
        return anything(dice);
    }
  };
  const object = (at: Json, levels: number): Fields => {
    const needed = (at.required ?? []) as string[];
    const entries: [string, Nonsense][] = [];
    for (const [name, inner] of Object.entries((at.properties ?? {}) as Json)) {
      const there = needed.includes(name) ? !dice.chance(wrong) : dice.chance(0.4);
      if (there) entries.push([name, make(inner, name, levels + 1)]);
    }
    const more = at.additionalProperties;
    if (more !== undefined && more !== false && entries.length === 0) {
      for (const name of dice.some(3, () => text(dice))) entries.push([name, make(more, name, levels + 1)]);
    }
    if (dice.chance(wrong)) entries.push([text(dice), anything(dice)]);
    if (entries.length > 0 && dice.chance(wrong)) {
      const [name] = dice.pick(entries);
      entries.push([name, odd(dice, name)]);
    }
    if (dice.chance(wrong / 4)) entries.push(['__proto__', new Fields([['role', 'root']])]);
    return new Fields(entries);
  };
  return make(shape.schema, '', 0);
}

/** What a shell would be given is never put together by chance. */
function odd(dice: Dice, name: string): Nonsense {
  return name === 'command' ? new Raw(dice.pick(RAWS)) : anything(dice);
}

function resolve(given: unknown, root: Json): Json {
  let at = (typeof given === 'object' && given !== null ? given : {}) as Json;
  for (let steps = 0; typeof at.$ref === 'string' && steps < 10; steps++) {
    const path = at.$ref.replace(/^#\/?/, '').split('/').filter(Boolean);
    at = path.reduce<Json>((inner, name) => (inner[name] ?? {}) as Json, root);
  }
  return at;
}

function plain(value: unknown): Nonsense {
  return new Raw(JSON.stringify(value));
}
