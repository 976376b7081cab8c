import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Redactor, type Secret } from './redaction.ts';

const KEY = { name: 'KEY', value: 'k3y-of-mine' };
const bytes = (text: string) => Buffer.from(text);

/** What `take` promises, in the plainest way. */
function redacted(whole: Buffer, secrets: readonly Secret[]): Buffer {
  const patterns = secrets
    .map(({ name, value }) => ({ name, value: bytes(value) }))
    .toSorted((a, b) => b.value.length - a.value.length);
  const parts: Buffer[] = [];
  for (let at = 0; at < whole.length; ) {
    const found = patterns.find(({ value }) => whole.subarray(at, at + value.length).equals(value));
    parts.push(found ? bytes(`[redacted:${found.name}]`) : whole.subarray(at, at + 1));
    at += found?.value.length ?? 1;
  }
  return Buffer.concat(parts);
}

/** Gives a stream in pieces, each time what was held back once more. */
function taken(chunks: readonly Uint8Array[], redactor: Redactor): Buffer {
  const parts: Uint8Array[] = [];
  let held = Buffer.alloc(0);
  for (const [n, chunk] of chunks.entries()) {
    const given = Buffer.concat([held, chunk]);
    const answer = redactor.take(given, { last: n === chunks.length - 1 });
    parts.push(Buffer.from(answer.bytes));
    held = given.subarray(given.length - answer.held);
  }
  expect(held.length).toBe(0);
  return Buffer.concat(parts);
}

/** Few letters, so that secrets begin within each other. */
const letters = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 8, maxLength: 40 });
const values = fc.uniqueArray(letters, { minLength: 1, maxLength: 12 });

test('in whatever pieces a stream comes, every secret of it is taken out, and nothing else', () => {
  fc.assert(
    fc.property(
      values,
      fc.array(fc.oneof(fc.nat(11), fc.string({ unit: fc.constantFrom('a', 'b', '\n', 'é') }))),
      fc.array(fc.nat(9), { minLength: 1 }),
      (values, text, sizes) => {
        const secrets = values.map((value, n) => ({ name: `N${n}`, value }));
        const whole = bytes(
          text.map((part) => (typeof part === 'number' ? values[part % values.length] : part)).join(''),
        );
        const chunks: Buffer[] = [];
        for (let at = 0, n = 0; at < whole.length || n === 0; n++) {
          const size = sizes[n % sizes.length]! + (n < 1_000 ? 0 : 9);
          chunks.push(whole.subarray(at, at + size));
          at += size;
        }
        const expected = redacted(whole, secrets);
        expect(taken(chunks, Redactor.of(secrets)!).toString()).toBe(expected.toString());
      },
    ),
    { numRuns: 1_000 },
  );
});

test('what is held back is no longer than it has to be', () => {
  const redactor = Redactor.of([KEY, { name: 'LONG', value: 'k3y-of-mine-and-yours' }])!;
  const held = (text: string) => redactor.take(bytes(text), { last: false }).held;
  expect(held('Password: ')).toBe(0);
  expect(held('the k')).toBe(1);
  expect(held('the k3y')).toBe(3);
  expect(held('the k3y k3z')).toBe(0);
  // It may be the longer one.
  expect(held('the k3y-of-mine')).toBe(11);
  expect(held('the k3y-of-mine!')).toBe(0);
});

test('a place in what came out is a place in what was given', () => {
  const redactor = Redactor.of([KEY])!;
  const given = `one k3y-of-mine\ntwo k3y-of-mine\nthree`;
  const answer = redactor.take(bytes(given), { last: true });
  const shown = Buffer.from(answer.bytes).toString();
  expect(shown).toBe('one [redacted:KEY]\ntwo [redacted:KEY]\nthree');
  for (const word of ['one', 'two', 'three', '\nthree']) {
    expect(answer.given(shown.indexOf(word))).toBe(given.indexOf(word));
  }
  expect(answer.given(shown.length)).toBe(given.length);
});

test('what was shown of a secret already does not keep its rest from being taken out', () => {
  const redactor = Redactor.of([KEY])!;
  const answer = redactor.take(bytes('k3yk3y-of-mine, k3y-of-mine'), { shown: 6, last: false });
  expect(Buffer.from(answer.bytes).toString()).toBe('[redacted:KEY], [redacted:KEY]');
  expect(answer.given(answer.bytes.length)).toBe('-of-mine, k3y-of-mine'.length);
  expect(redactor.isHarmless(bytes('k3y-o'))).toBe(true);
  expect(redactor.isHarmless(bytes('k3y-of'))).toBe(false);
  expect(redactor.shownAtEnd(bytes('and k3y-o'))).toBe(5);
  expect(redactor.shownAtEnd(bytes('and k3y-of'))).toBe(0);
});

test('short values, and the space around a value, are no secrets', () => {
  expect(Redactor.of([{ name: 'A', value: 'seven77' }])).toBe(null);
  expect(Redactor.of([{ name: 'A', value: '  seven77 \n' }])).toBe(null);
  expect(Redactor.of([{ name: 'A', value: '\neight888\n' }])!.text('eight888 ')).toBe('[redacted:A] ');
});

test('a value of several lines is found as it is, and as it stands in a string of JSON', () => {
  const redactor = Redactor.of([{ name: 'PEM', value: '-- "begin" --\nabc\n-- end --\n' }])!;
  expect(redactor.text('see -- "begin" --\nabc\n-- end --.')).toBe('see [redacted:PEM].');
  expect(redactor.text('{"a":"-- \\"begin\\" --\\nabc\\n-- end --\\n"}')).toBe('{"a":"[redacted:PEM]\\n"}');
});

test('JSON stays JSON, whatever way its strings are escaped, and what tells nothing stays byte for byte', () => {
  const secret = { name: 'QUOTED', value: 'a"b\\c\nd/é' };
  const redactor = Redactor.of([secret, KEY])!;
  const free = fc.string({ unit: fc.constantFrom('a', '"', '\\', '\n', '/', 'é', '😀', ',', ':', '{') });
  const strings = fc
    .array(fc.oneof(free, fc.constant(secret.value), fc.constant(KEY.value)))
    .map((parts) => parts.join('.'));
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof(
      { depthSize: 'small' },
      strings,
      fc.integer(),
      fc.constant(null),
      fc.array(tie('json')),
      fc.dictionary(strings, tie('json')),
    ),
  }));
  /** Escapes more than it has to. */
  const escapeAll = (text: string) =>
    // None of these is in `null` or a number, nor stands behind a backslash.
    text.replace(/[aé/]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
  fc.assert(
    fc.property(json, fc.boolean(), (value, much) => {
      const written = JSON.stringify(value);
      const text = much ? escapeAll(written) : written;
      const shown = redactor.json(text);
      expect(JSON.parse(shown)).toEqual(without(value));
      if (!written.includes(JSON.stringify(secret.value).slice(1, -1)) && !written.includes(KEY.value)) {
        expect(shown).toBe(text);
      }
    }),
    { numRuns: 500 },
  );
  expect(redactor.json('{"n":1.00,"big":12345678901234567890,"t":"k3y-of-mine"}')).toBe(
    '{"n":1.00,"big":12345678901234567890,"t":"[redacted:KEY]"}',
  );

  function without(value: unknown): unknown {
    if (typeof value === 'string') {
      return value.replaceAll(secret.value, '[redacted:QUOTED]').replaceAll(KEY.value, '[redacted:KEY]');
    }
    if (Array.isArray(value)) return value.map(without);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [without(key), without(one)]));
  }
});
