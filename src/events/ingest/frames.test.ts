import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Redactor } from '../../core/redaction.ts';
import { limits } from '../limits.ts';
import { FrameCutter, type FrameSizes, type Frames, type Piece } from './frames.ts';
import { UnfinishedLines } from './unfinished-lines.ts';

const MIB = 1024 * 1024;
const none = () => null;
const note = (text: string) => JSON.stringify({ jsonrpc: '2.0', method: 'say', params: { text } });

/** A part of a stream's result: a frame by its text, or output by its position. Adjacent output is merged. */
type Result =
  | { frame: string | null; from: number; to: number }
  | { output: string; from: number; to: number }
  | { too_large: number };

/** Collects a stream's pieces, and checks that every byte is in exactly one of them. */
class Taker {
  readonly results: Result[] = [];
  at = 0;

  take({ bytes, pieces }: Frames): void {
    const start = this.at;
    const copy = Buffer.from(bytes);
    for (const piece of pieces) this.#add(piece, copy, start);
    expect(this.at).toBe(start + bytes.length);
  }

  #add(piece: Piece, bytes: Buffer, start: number): void {
    const last = this.results.at(-1);
    if (piece.kind === 'too_large') this.results.push({ too_large: this.at });
    else if (piece.kind === 'frame') {
      const shown = piece.text !== null;
      const from = shown ? this.at : this.at - piece.size;
      const to = from + piece.size;
      if (shown) {
        const line = bytes.subarray(from - start, to - start).toString();
        expect(piece.text).toBe(line.trim().replaceAll('\r', ' '));
      }
      this.results.push({ frame: piece.text, from, to });
      this.at = to;
    } else {
      expect(piece.bytes.length).toBeGreaterThan(0);
      const output = Buffer.from(piece.bytes).toString('latin1');
      const from = this.at - start;
      expect(bytes.toString('latin1', from, from + output.length)).toBe(output);
      this.at += output.length;
      if (last && 'output' in last) {
        last.output += output;
        last.to = this.at;
      } else this.results.push({ output, from: this.at - output.length, to: this.at });
    }
  }
}

function taken(chunks: readonly Uint8Array[], sizes?: FrameSizes): Result[] {
  const cutter = new FrameCutter(false, none, sizes && { sizes });
  const taker = new Taker();
  for (const [n, chunk] of chunks.entries()) {
    const frames = cutter.take(chunk, { last: n === chunks.length - 1 });
    if (frames) taker.take(frames);
  }
  expect(cutter.waiting_bytes).toBe(0);
  return taker.results;
}

const texts = (...chunks: string[]) => chunks.map((chunk) => Buffer.from(chunk));

test('JSON-RPC lines become frames and other lines become output, in order', () => {
  const results = taken(texts(`Loading\n${note('a')}\n[1]\n\n${note('b')}\n{"a":1}\n`));
  expect(results).toMatchObject([
    { output: 'Loading\n' },
    { frame: note('a') },
    { output: '[1]\n\n' },
    { frame: note('b') },
    { output: '{"a":1}\n' },
  ]);
});

test('an incomplete frame waits for its end, and becomes output if that never comes', () => {
  const cutter = new FrameCutter(false, none);
  const line = Buffer.from(`${note('é€😀')}\n`);
  for (let end = 1; end < line.length; end++) {
    expect(cutter.take(line.subarray(end - 1, end), { last: false })).toBeNull();
    expect(cutter.waiting_bytes).toBe(end);
  }
  expect(cutter.take(line.subarray(-1), { last: false })).toMatchObject({ pieces: [{ kind: 'frame' }] });
  expect(taken(texts(`${note('a')}\n{"jsonrpc":"2.0","meth`, ''))).toMatchObject([
    { frame: note('a') },
    { output: '{"jsonrpc":"2.0","meth' },
  ]);
});

test('a complete last line without a newline is a frame', () => {
  expect(taken(texts(note('a')))).toMatchObject([{ frame: note('a') }]);
  expect(taken(texts(note('a'), ''))).toMatchObject([{ frame: note('a') }]);
  const cut = new FrameCutter(false, none).take(Buffer.from('half'), { last: true });
  expect(cut!.pieces).toEqual([{ kind: 'output', bytes: Buffer.from('half'), partial: false }]);
});

test('carriage returns are allowed between JSON tokens, but not within strings', () => {
  expect(taken(texts(`${note('a')}\r\n{"jsonrpc":"2.0",\r"method":"b"}\n`))).toMatchObject([
    { frame: note('a') },
    { frame: '{"jsonrpc":"2.0", "method":"b"}' },
  ]);
  expect(taken(texts('{"jsonrpc":"2.0","method":"a\rb"}\n'))).toMatchObject([{ output: expect.any(String) }]);
});

test('invalid UTF-8 is output', () => {
  const broken = Buffer.concat([
    Buffer.from('{"jsonrpc":"2.0","method":"'),
    Buffer.of(0xff),
    Buffer.from('"}\n'),
  ]);
  expect(taken([broken, Buffer.from(`${note('a')}\n`)])).toMatchObject([
    { output: broken.toString('latin1') },
    { frame: note('a') },
  ]);
});

test('a frame that is too large for an event follows its bytes', () => {
  const long = note('x'.repeat(MIB));
  const [before, output, frame, after] = taken(texts(`${note('a')}\n${long}\n${note('b')}\n`));
  expect([before, after]).toMatchObject([{ frame: note('a') }, { frame: note('b') }]);
  expect((output as { output: string }).output === `${long}\n`).toBe(true);
  expect(frame).toMatchObject({ frame: null });
  const fitting = note('x'.repeat(MIB - note('').length - 1));
  expect(taken(texts(`${fitting}\n`))).toMatchObject([{ frame: expect.any(String) }]);
});

test('a line that is too long for a frame is reported once, and the next line is a frame again', () => {
  const lines = [note('a'), note('x'.repeat(limits.acp_frame_bytes_max)), note('b')];
  const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
  for (const size of [1_777, MIB, bytes.length]) {
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) =>
      bytes.subarray(n * size, (n + 1) * size),
    );
    const results = taken(chunks);
    expect(results.map((one) => Object.keys(one)[0])).toEqual(['frame', 'too_large', 'output', 'frame']);
    expect((results[2] as { output: string }).output === `${lines[1]}\n`).toBe(true);
  }
});

test('a line that is too long becomes partial output', () => {
  const cutter = new FrameCutter(false, none, { sizes: { frame_bytes_max: 10, payload_bytes_max: 5 } });
  expect(cutter.take(Buffer.from('12345678901é').subarray(0, 12), { last: false })).toEqual({
    bytes: Buffer.from('12345678901'),
    pieces: [{ kind: 'too_large' }, { kind: 'output', bytes: Buffer.from('12345678901'), partial: true }],
    spilling: true,
  });
  expect(cutter.waiting_bytes).toBe(1);
  expect(cutter.take(Buffer.from('é').subarray(1), { last: false })).toMatchObject({
    pieces: [{ kind: 'output', bytes: Buffer.from('é'), partial: true }],
  });
  expect(cutter.take(Buffer.from('end\n'), { last: false })).toMatchObject({
    pieces: [{ kind: 'output', bytes: Buffer.from('end\n'), partial: false }],
    spilling: false,
  });
});

const line = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 90 }).map((text) => `${note(text)}\n`),
  fc.string({ unit: 'grapheme', maxLength: 30 }).map((text) => `${note(text)}\r\n`),
  fc.string({ unit: 'grapheme', maxLength: 150 }).map((text) => `${text}\n`),
  fc.constantFrom('\n', '{', '{"jsonrpc":"2.0","method":"a"}', ' \t', '\r\n'),
);
const piece = fc.oneof(
  { weight: 4, arbitrary: line.map((text) => Buffer.from(text)) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)) },
);
/** Limits small enough for short lines to exceed them. */
const small: FrameSizes = { frame_bytes_max: 100, payload_bytes_max: 70 };

test('the result does not depend on chunks or on restarts, and has every byte once', () => {
  const steps = fc.array(fc.record({ bytes: fc.integer({ min: 0, max: 60 }), crashes: fc.boolean() }), {
    minLength: 1,
  });
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), steps, (parts, walk) => {
      const all = Buffer.concat(parts);
      let cutter = new FrameCutter(false, none, { sizes: small });
      const taker = new Taker();
      let [position, spilling] = [0, false];
      for (let n = 0; taker.at < all.length; n++) {
        const { bytes, crashes } = walk[n % walk.length]!;
        // Ensures that the loop ends.
        const end = n > 200 ? all.length : Math.min(position + bytes, all.length);
        const frames = cutter.take(all.subarray(position, end), { last: end === all.length });
        position = end;
        if (frames) {
          taker.take(frames);
          spilling = frames.spilling;
        }
        if (crashes && n <= 200) {
          position = taker.at;
          cutter = new FrameCutter(spilling, none, { sizes: small });
        }
      }
      expect(taker.results).toEqual(taken([all], small));
    }),
    { numRuns: 500 },
  );
});

const PEM = { name: 'PEM', value: '-- key --\nabcdef' };
const WORD = { name: 'WORD', value: 'open-sesame' };

test('redacts output however it is split, and leaves frames unchanged', () => {
  const redactor = () => Redactor.of([PEM, WORD]);
  const line = fc.oneof(
    fc.constantFrom(PEM.value, `so: ${PEM.value}`, WORD.value, '-- key --', 'open-', '', 'é'),
    fc.string({ unit: fc.constantFrom('a', '-', '€'), maxLength: 30 }),
    fc.constantFrom('frame', WORD.value, 'a frame that is too large to be shown whole').map(note),
  );
  const redacted = (chunks: readonly Uint8Array[]) => {
    const cutter = new FrameCutter(false, redactor, {
      sizes: { frame_bytes_max: 200, payload_bytes_max: 70 },
    });
    const seen: string[] = [];
    let size = 0;
    for (const [n, chunk] of chunks.entries()) {
      const frames = cutter.take(chunk, { last: n === chunks.length - 1 });
      size += frames?.bytes.length ?? 0;
      for (const piece of frames?.pieces ?? []) {
        if (piece.kind === 'frame') seen.push(`frame ${JSON.stringify(piece.message)}`);
        else if (piece.kind === 'too_large') seen.push('too large');
        else if (seen.at(-1)?.startsWith('output '))
          seen.push(seen.pop() + Buffer.from(piece.bytes).toString('latin1'));
        else seen.push(`output ${Buffer.from(piece.bytes).toString('latin1')}`);
      }
    }
    expect(size).toBe(Buffer.concat(chunks).length);
    return seen;
  };
  fc.assert(
    fc.property(
      fc.array(line, { maxLength: 12 }),
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
      (lines, sizes) => {
        const whole = Buffer.from(lines.map((one) => `${one}\n`).join(''));
        const chunks: Buffer[] = [];
        for (let at = 0, n = 0; at < whole.length || n === 0; at += sizes[n++ % sizes.length]!) {
          chunks.push(whole.subarray(at, at + sizes[n % sizes.length]!));
        }
        const seen = redacted(chunks);
        expect(seen).toEqual(redacted([whole]));
        const output = seen.filter((one) => one.startsWith('output ')).join('');
        expect(output).not.toContain(WORD.value);
        expect(output).not.toContain(PEM.value);
        const frames = (one: string) => one.startsWith('{');
        expect(seen.filter((one) => one.startsWith('frame ')).length).toBe(lines.filter(frames).length);
      },
    ),
    { numRuns: 500 },
  );
});

test('loses no byte of an incomplete character before a possible secret', () => {
  const cutter = new FrameCutter(false, () => Redactor.of([PEM]));
  const parts = [Buffer.from([0x61, 0xc3]), Buffer.from('-- key --\n'), Buffer.from('abcdef\n')];
  const first = cutter.take(Buffer.concat(parts.slice(0, 2)), { last: false });
  const rest = cutter.take(parts[2]!, { last: true });
  const output = [first, rest].flatMap((frames) => frames?.pieces ?? []);
  const bytes = output.map((piece) => (piece.kind === 'output' ? piece.bytes : Buffer.from('?')));
  expect(Buffer.concat(bytes).toString('latin1')).toBe('a\xc3[redacted:PEM]\n');
  expect((first?.bytes.length ?? 0) + (rest?.bytes.length ?? 0)).toBe(Buffer.concat(parts).length);
});

test('redacts an unfinished line, even if two pieces of it split a secret', () => {
  const cutter = new FrameCutter(false, () => Redactor.of([WORD]), {
    sizes: { frame_bytes_max: 20, payload_bytes_max: 5 },
  });
  const shown: string[] = [];
  for (const chunk of texts('a line that is long, open-', 'ses', 'ame, and open-sesa', 'me\n')) {
    for (const piece of cutter.take(chunk, { last: false })?.pieces ?? []) {
      shown.push(piece.kind === 'output' ? Buffer.from(piece.bytes).toString() : piece.kind);
    }
  }
  expect(shown.join('')).toBe('too_largea line that is long, [redacted:WORD], and [redacted:WORD]\n');
});

test('redacts the output of an oversized frame, however secrets are escaped', () => {
  const sizes = { frame_bytes_max: 500, payload_bytes_max: 50 };
  const cutter = new FrameCutter(false, () => Redactor.of([WORD]), { sizes });
  const line = `before open-sesame\n${note(`${'x'.repeat(50)} open-sesame`)}\n`;
  const escaped = line.replace('x open', 'x \\u006fpen');
  const output = cutter
    .take(Buffer.from(escaped), { last: false })!
    .pieces.flatMap((piece) => (piece.kind === 'output' ? Buffer.from(piece.bytes).toString() : []));
  expect(output.join('')).toBe(`before [redacted:WORD]\n${note(`${'x'.repeat(50)} [redacted:WORD]`)}\n`);
});

test('lines dropped to free memory become output, with every byte exactly once', () => {
  const secret = 'open-sesame';
  const line = fc.oneof(
    fc.integer({ min: 0, max: 90 }).map((size) => note('x'.repeat(size))),
    fc.constantFrom('plain', '', `${secret} in a line`, note(secret), 'x'.repeat(150)),
  );
  fc.assert(
    fc.property(
      fc.array(line, { minLength: 1, maxLength: 8 }),
      fc.array(fc.record({ size: fc.integer({ min: 1, max: 60 }), drops: fc.boolean() }), { minLength: 1 }),
      (lines, steps) => {
        const stream = Buffer.from(lines.map((text) => `${text}\n`).join(''));
        const cutter = new FrameCutter(false, none, { sizes: small });
        const taker = new Taker();
        for (let n = 0; taker.at < stream.length; n++) {
          const { size, drops } = steps[n % steps.length]!;
          // Not every time, because a read that is too short for its line would make no progress.
          if (drops && n % 3 === 0) cutter.drop();
          const from = taker.at + cutter.waiting_bytes;
          const chunk = stream.subarray(from, from + size);
          const frames = cutter.take(chunk, { last: from + chunk.length === stream.length });
          if (frames) taker.take(frames);
        }
        expect(taker.at).toBe(stream.length);
        const frames = taker.results.flatMap((one) => ('frame' in one ? [one.frame] : []));
        const whole = lines.filter((text) => text.startsWith('{'));
        for (const frame of frames) if (frame !== null) expect(whole).toContain(frame);
      },
    ),
    { numRuns: 500 },
  );
});

test('drops only the longest line of the owner whose lines take the most memory', () => {
  const lines = new UnfinishedLines(4_000);
  const dropped: string[] = [];
  const open = (owner: string, name: string) => {
    const budget = { lines, owner, dropped: () => dropped.push(name) };
    return new FrameCutter(false, none, { budget });
  };
  const [one, two, bobs] = [open('alice', 'one'), open('alice', 'two'), open('bob', 'bobs')];
  one.take(Buffer.alloc(900, 'x'), { last: false });
  two.take(Buffer.alloc(1_200, 'x'), { last: false });
  // The longest of all, but its owner takes less memory.
  bobs.take(Buffer.alloc(1_500, 'x'), { last: false });
  expect(dropped).toEqual([]);
  one.take(Buffer.alloc(100, 'x'), { last: false });
  expect(dropped).toEqual(['one']);
  expect(one).toMatchObject({ waiting_bytes: 0, is_dropped: true, drops: 1 });
  expect(one.take(Buffer.alloc(900, 'x'), { last: false })).toMatchObject({
    pieces: [{ kind: 'too_large' }, { kind: 'output' }],
    spilling: true,
  });
  expect([two.waiting_bytes, bobs.waiting_bytes]).toEqual([1_200, 1_500]);
  expect(lines.bytes).toBe(2_700);
  for (const cutter of [one, two, bobs]) cutter.close();
  expect(lines.bytes).toBe(0);
});
