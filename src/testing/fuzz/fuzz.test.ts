/** Rules of the fuzzers: a seed always produces the same cases, and faults of a program are detected. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { line } from './acp-frames.ts';
import { almostValid, anything, Fields, jsonOf, Raw, shapeOf } from './malformed.ts';
import { garbled, Rng } from './rng.ts';
import { growthMib, Watch } from './watch.ts';

test('the same seed produces the same cases, and another seed different ones', () => {
  const make = (seed: number) => {
    const rng = new Rng(seed);
    const lines = Array.from({ length: 50 }, () => line(rng, ['"a"']).toString('base64'));
    return [...lines, jsonOf(anything(rng)), garbled(rng, Buffer.from('some bytes')).toString('hex')].join(
      '\n',
    );
  };
  expect(make(1)).toBe(make(1));
  expect(make(1)).not.toBe(make(2));
});

test('an object may contain a key twice, or a key that is special in JavaScript', () => {
  const odd = new Fields([
    ['a', 1],
    ['a', 2],
    ['__proto__', new Fields([])],
    ['b', new Raw('1e999')],
  ]);
  expect(jsonOf(odd)).toBe('{"a":1,"a":2,"__proto__":{},"b":1e999}');
});

test('values match the schema if none are to be wrong', () => {
  const schema = z.object({
    kind: z.enum(['a', 'b']),
    count: z.int().min(3).optional(),
    names: z.array(z.object({ id: z.string() })),
    either: z.union([z.literal('x'), z.null()]),
  });
  const shape = shapeOf(schema);
  for (let seed = 0; seed < 200; seed++) {
    const made = jsonOf(almostValid(new Rng(seed), shape, () => undefined, 0));
    expect([made, schema.safeParse(JSON.parse(made)).success]).toEqual([made, true]);
  }
});

test('detects a program that exited, does not answer or logs a fault, and reports each fault once', async () => {
  const program = { isRunning: true, pid: 0, log: '{"level":"error","message":"long ago"}\n' };
  let answer: Promise<unknown> = Promise.resolve();
  const watch = new Watch(program, () => answer);
  program.log += '{"level":"warn","message":"an actor was refused"}\n';
  await watch.check();
  for (const line of [
    '{"level":"error","message":"request failed"}',
    'Uncaught Error: no',
    '    at f (file.ts:1:2)',
  ]) {
    program.log += `${line}\n`;
    await expect(watch.check()).rejects.toThrow('the log reports an error');
    await watch.check();
  }
  answer = Promise.reject(new Error('no answer'));
  await expect(watch.check()).rejects.toThrow('no answer');
  program.isRunning = false;
  await expect(watch.check()).rejects.toThrow('the program exited');
});

test('memory grows per repetition if its lowest values do', () => {
  expect(growthMib([50, 90, 99, 101, 150, 100, 170, 101, 100])).toBe(0);
  expect(growthMib([50, 90, 99, 110, 150, 120, 170, 140, 150])).toBe(10);
});
