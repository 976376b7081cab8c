import fc from 'fast-check';
import { expect, test } from 'vitest';
import { limits } from './limits.ts';
import { Redactor, type Secret } from './redaction.ts';

const KEY = { name: 'KEY', value: 'k3y-of-mine' };
const bytes = (text: string) => Buffer.from(text);

/** A naive implementation of what `take` must return. */
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

/** Feeds a stream in chunks. Passes held-back bytes again with the next chunk. */
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

/** A small alphabet, so that secrets overlap. */
const letters = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 8, maxLength: 40 });
const values = fc.uniqueArray(letters, { minLength: 1, maxLength: 12 });

test('redacts every secret and nothing else, however the stream is split', () => {
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

test('holds back no more bytes than necessary', () => {
  const redactor = Redactor.of([KEY, { name: 'LONG', value: 'k3y-of-mine-and-yours' }])!;
  const held = (text: string) => redactor.take(bytes(text), { last: false }).held;
  expect(held('Password: ')).toBe(0);
  expect(held('the k')).toBe(1);
  expect(held('the k3y')).toBe(3);
  expect(held('the k3y k3z')).toBe(0);
  // This may be the beginning of the longer secret.
  expect(held('the k3y-of-mine')).toBe(11);
  expect(held('the k3y-of-mine!')).toBe(0);
});

test('maps output positions to input positions', () => {
  const redactor = Redactor.of([KEY])!;
  const given = `one k3y-of-mine\ntwo k3y-of-mine\nthree`;
  const answer = redactor.take(bytes(given), { last: true });
  const shown = Buffer.from(answer.bytes).toString();
  expect(shown).toBe('one [redacted:KEY]\ntwo [redacted:KEY]\nthree');
  for (const word of ['one', 'two', 'three', '\nthree']) {
    expect(answer.sourceBytes(shown.indexOf(word))).toBe(given.indexOf(word));
  }
  expect(answer.sourceBytes(shown.length)).toBe(given.length);
});

test('names the end of the mark that a split would divide', () => {
  const { bytes: out, markEnd } = Redactor.of([KEY])!.take(bytes('one k3y-\x1b[0mof-mine two'), {
    last: true,
  });
  const shown = Buffer.from(out).toString();
  expect(shown).toBe('one \x1b[0m[redacted:KEY] two');
  const [from, to] = [shown.indexOf('\x1b'), shown.indexOf(' two')];
  for (let count = 0; count <= shown.length; count++) {
    expect(markEnd(count)).toBe(from < count && count < to ? to : count);
  }
});

test('redacts the rest of a secret whose beginning is already in the output', () => {
  const redactor = Redactor.of([KEY])!;
  const answer = redactor.take(bytes('k3yk3y-of-mine, k3y-of-mine'), { shown: 6, last: false });
  expect(Buffer.from(answer.bytes).toString()).toBe('[redacted:KEY], [redacted:KEY]');
  expect(answer.sourceBytes(answer.bytes.length)).toBe('-of-mine, k3y-of-mine'.length);
  expect(redactor.isHarmless(bytes('k3y-o'))).toBe(true);
  expect(redactor.isHarmless(bytes('k3y-of'))).toBe(false);
  expect(redactor.shownAtEnd(bytes('and k3y-o'))).toBe(5);
  expect(redactor.shownAtEnd(bytes('and k3y-of'))).toBe(0);
});

test('ignores short values and whitespace around a value', () => {
  expect(Redactor.of([{ name: 'A', value: 'seven77' }])).toBe(null);
  expect(Redactor.of([{ name: 'A', value: '  seven77 \n' }])).toBe(null);
  expect(Redactor.of([{ name: 'A', value: '\neight888\n' }])!.text('eight888 ')).toBe('[redacted:A] ');
});

test('finds a multi-line value as it is and within a JSON string', () => {
  const redactor = Redactor.of([{ name: 'PEM', value: '-- "begin" --\nabc\n-- end --\n' }])!;
  expect(redactor.text('see -- "begin" --\nabc\n-- end --.')).toBe('see [redacted:PEM].');
  expect(redactor.text('{"a":"-- \\"begin\\" --\\nabc\\n-- end --\\n"}')).toBe('{"a":"[redacted:PEM]\\n"}');
});

test('keeps JSON valid however it is escaped, and leaves JSON without secrets unchanged', () => {
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
  /** Escapes more characters than necessary. */
  const escapeAll = (text: string) =>
    // None of these is in `null` or a number, or follows a backslash.
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

const ESCAPES = ['\x1b[0m', '\x1b[1;31m', '\x1b[38;2;1;2;3m', '\x1b[K', '\x1b(B', '\x1b7', '\x1b[?25l'];

test.each(ESCAPES)('redacts a secret that %j interrupts anywhere, however it is split', (sequence) => {
  const redactor = Redactor.of([KEY])!;
  for (let place = 1; place < KEY.value.length; place++) {
    const text = `one ${KEY.value.slice(0, place)}${sequence}${KEY.value.slice(place)} two`;
    for (let cut = 0; cut <= text.length; cut++) {
      const shown = taken([bytes(text.slice(0, cut)), bytes(text.slice(cut))], redactor).toString();
      expect(shown).toBe(`one ${sequence}[redacted:KEY] two`);
    }
  }
  const every = [...KEY.value].join(sequence);
  expect(redactor.text(`<${every}>`)).toBe(`<${sequence.repeat(KEY.value.length - 1)}[redacted:KEY]>`);
  expect(redactor.json(JSON.stringify({ text: every }))).toContain('[redacted:KEY]');
});

// In quadratic time, this takes minutes.
test('searches output with many interrupted secrets in linear time', () => {
  const redactor = Redactor.of([KEY])!;
  const given = bytes('k3y\x1b[1;31m-of-mine'.repeat(150_000));
  const shown = Buffer.from(redactor.take(given, { last: true }).bytes).toString();
  expect(shown === '\x1b[1;31m[redacted:KEY]'.repeat(150_000)).toBe(true);
});

test('redacts a secret that many sequences interrupt, up to a limit, however the stream is split', () => {
  const redactor = Redactor.of([KEY])!;
  const count = limits.redact_sequences_bytes_max / 4;
  for (const more of [0, 1]) {
    const sequences = '\x1b[0m'.repeat(count + more);
    const text = `k3y${sequences}-of-mine k3y-of-mine`;
    const expected = more
      ? `k3y${sequences}-of-mine [redacted:KEY]`
      : `${sequences}[redacted:KEY] [redacted:KEY]`;
    for (const cut of [2, 7, 4 * count, text.length - 14, text.length - 12, text.length]) {
      const shown = taken([bytes(text.slice(0, cut)), bytes(text.slice(cut))], redactor).toString();
      expect(shown === expected).toBe(true);
    }
  }
  const { held } = redactor.take(bytes(`k3y${'\x1b[0m'.repeat(2 * count)}`), { last: false });
  expect(held).toBe(0);
  // The shorter of two secrets that begin alike is within the limit.
  const alike = Redactor.of([KEY, { name: 'LONG', value: `${KEY.value}-and-more` }])!;
  const sequences = '\x1b[0m'.repeat(count + 1);
  const text = `k3y\x1b[1m-of-mine${sequences}-and-more`;
  const shown = Buffer.from(alike.take(bytes(text), { last: true }).bytes).toString();
  expect(shown === `\x1b[1m[redacted:KEY]${sequences}-and-more`).toBe(true);
});

test('a sequence within a secret does not form another secret with the text after it', () => {
  const redactor = Redactor.of([{ name: 'M', value: 'maaaaaaaam' }])!;
  expect(redactor.text('maaaaaaaa\x1b[0mmaaaaaaaam')).toBe('\x1b[0m[redacted:M]aaaaaaaam');
});

test('redacts a secret that begins with the end of an escape sequence', () => {
  const redactor = Redactor.of([{ name: 'M', value: 'my-secret-1' }])!;
  for (const before of ['\x1b', '\x1b[', '\x1b[3', '\x1b(']) {
    expect(redactor.text(`${before}my-secret-1`)).toBe(`${before}[redacted:M]`);
  }
});

test('matches a secret without the escape sequences in its value', () => {
  const redactor = Redactor.of([{ name: 'PS1', value: '\x1b[1mprompt-of-mine\x1b[0m' }])!;
  expect(redactor.text('a \x1b[1mprompt-of-mine\x1b[0m b')).toBe('a \x1b[1m[redacted:PS1]\x1b[0m b');
});

test('treats invalid and incomplete sequences as text, and holds back only incomplete ones', () => {
  const redactor = Redactor.of([KEY])!;
  for (const odd of [
    '\x1b[12345m',
    '\x1b[\n',
    '\x1b\n',
    `\x1b[${'1;'.repeat(30)}m`,
    '\x1b]0;title\x07',
    '\x1b[',
  ]) {
    expect(redactor.text(`${odd}x ${KEY.value}`)).toBe(`${odd}x [redacted:KEY]`);
  }
  const held = (text: string) => redactor.take(bytes(text), { last: false }).held;
  expect(held('ready\x1b[0m')).toBe(0);
  expect(held('ready\x1b[1;3')).toBe(5);
  expect(held('ready\x1b]0;title')).toBe(0);
  expect(held('k3y\x1b[0m')).toBe(7);
});

/** A naive implementation: removes what a terminal does not show. */
const bare = (text: string) =>
  text.replace(
    /\x1b(?:\[[<=>?]?(?:\d{0,4}[:;]){0,23}\d{0,4}[ -/]{0,2}[@-~]|[ -/]{1,2}[0-~]|[0-OQ-WYZ\\`-~])/g,
    '',
  );

test('redacts secrets with escape sequences anywhere, however the stream is split', () => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'm', '0', ';'), minLength: 8, maxLength: 16 });
  const part = fc.oneof(
    { weight: 3, arbitrary: fc.tuple(fc.nat(5), fc.nat(15)) },
    { weight: 2, arbitrary: fc.constantFrom(...ESCAPES, '\x1b', '\x1b[', '\x1b[0', ';', '\x1b]') },
    { weight: 1, arbitrary: fc.constantFrom('a', 'm', '0', '[', '\n') },
  );
  let found = 0;
  fc.assert(
    fc.property(
      fc.uniqueArray(letters, { minLength: 1, maxLength: 4 }),
      fc.array(part, { maxLength: 24 }),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
      (values, parts, sizes) => {
        const secrets = values.map((value, n) => ({ name: `N${n}`, value }));
        // Either the beginning of a secret's value, or the end of one.
        const text = parts
          .map((one) => {
            if (typeof one === 'string') return one;
            const value = values[one[0] % values.length]!;
            return one[0] % 2 ? value.slice(0, one[1]) : value.slice(one[1] % value.length);
          })
          .join('');
        const redactor = Redactor.of(secrets)!;
        const known = secrets.map(({ value }) => bare(value)).filter((value) => value.length >= 8);
        const whole = taken([bytes(text)], redactor).toString();
        for (const value of known) {
          expect(whole).not.toContain(value);
          expect(bare(whole)).not.toContain(value);
        }
        const has = known.some((value) => text.includes(value) || bare(text).includes(value));
        if (has) found++;
        expect(whole === text).toBe(!has);
        const chunks: Buffer[] = [];
        for (let at = 0, n = 0; at < text.length || n === 0; n++) {
          chunks.push(bytes(text.slice(at, at + sizes[n % sizes.length]!)));
          at += sizes[n % sizes.length]!;
        }
        expect(taken(chunks, redactor).toString()).toBe(whole);
      },
    ),
    { numRuns: 3_000 },
  );
  expect(found).toBeGreaterThan(100);
});
