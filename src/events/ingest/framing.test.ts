import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cut } from './framing.ts';

const text = (value: string) => Buffer.from(value);

test('complete lines become one event', () => {
  expect(cut(text('a\nb\n'), { more: false, last: false })).toEqual({
    used: 4,
    ends: [4],
    partial: [false],
    is_text: [true],
  });
});

test('an unfinished line becomes partial if nothing follows yet', () => {
  expect(cut(text('a\nb'), { more: false, last: false })).toEqual({
    used: 3,
    ends: [3],
    partial: [true],
    is_text: [true],
  });
});

test('an unfinished line waits if more is known to follow', () => {
  expect(cut(text('a\nb'), { more: true, last: false })).toEqual({
    used: 2,
    ends: [2],
    partial: [false],
    is_text: [true],
  });
});

test('the last bytes of a stream are not partial', () => {
  expect(cut(text('b'), { more: false, last: true })).toEqual({
    used: 1,
    ends: [1],
    partial: [false],
    is_text: [true],
  });
});

test('a long line is split into partial events', () => {
  const result = cut(text('x'.repeat(25)), { more: true, last: false, event_bytes_max: 10 });
  expect(result).toEqual({ used: 20, ends: [10, 20], partial: [true, true], is_text: [true, true] });
});

test('a character is never split, wherever the chunk ends', () => {
  for (const character of ['é', '€', '😀']) {
    const bytes = text(`ab${character}`);
    for (let end = 3; end < bytes.length; end++) {
      expect(cut(bytes.subarray(0, end), { more: false, last: false }).used).toBe(2);
    }
  }
});

test('an unfinished character at the end of a stream is output', () => {
  expect(cut(text('é').subarray(0, 1), { more: false, last: true }).used).toBe(1);
});

test('lines that are not UTF-8 are separate from text', () => {
  const bytes = Buffer.concat([text('good\n'), Buffer.from([0xff, 0x0a]), text('fine\n')]);
  expect(cut(bytes, { more: false, last: false })).toMatchObject({
    ends: [5, 7, 12],
    is_text: [true, false, true],
  });
});

test('any bytes in any chunks are output completely, in order and within the limit', () => {
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc.string({ unit: 'grapheme', maxLength: 20 }).map((value) => new Uint8Array(text(value))),
    fc.constant(new Uint8Array([0x0a])),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), fc.boolean(), (pieces, more) => {
      let pending = Buffer.alloc(0);
      const out: Buffer[] = [];
      for (const [index, bytes] of pieces.entries()) {
        pending = Buffer.concat([pending, bytes]);
        const last = index === pieces.length - 1;
        const result = cut(pending, { more: more && !last, last, event_bytes_max: 16 });
        let from = 0;
        for (const [i, end] of result.ends.entries()) {
          expect(result.is_text[i]).toBe(isUtf8(pending.subarray(from, end)));
          expect(end - from).toBeGreaterThan(0);
          expect(end - from).toBeLessThanOrEqual(16);
          out.push(pending.subarray(from, end));
          from = end;
        }
        expect(from).toBe(result.used);
        expect(pending.length - result.used).toBeLessThan(16);
        pending = pending.subarray(result.used);
      }
      expect(pending.length).toBe(0);
      expect(Buffer.concat(out).equals(Buffer.concat(pieces))).toBe(true);
    }),
  );
});
