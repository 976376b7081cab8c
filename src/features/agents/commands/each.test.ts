import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import type { Io } from '../../../cli/context.ts';
import { exitCodes } from '../../../cli/failure.ts';
import { problems } from '../../../core/problem.ts';
import { each } from './each.ts';

async function run(errors: Record<string, Error>) {
  const stderr = new PassThrough();
  const io = { stderr, signal: new AbortController().signal } as unknown as Io;
  const done: string[] = [];
  const act = async (ref: string) => {
    done.push(ref);
    if (errors[ref]) throw errors[ref];
  };
  const error = await each(io, ['a', 'b', 'c'], act).catch((reason) => reason);
  return { done, error, reported: String(stderr.read() ?? '') };
}

const epipe = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });

test('the command runs for all items even if nobody reads its output any more', async () => {
  expect(await run({ a: epipe, b: epipe })).toEqual({ done: ['a', 'b', 'c'], error: epipe, reported: '' });
});

test('a failure of an item decides the exit code, also if nobody reads the output any more', async () => {
  expect(await run({ a: problems.agentNotFound(), b: epipe })).toMatchObject({
    done: ['a', 'b', 'c'],
    error: { exit: exitCodes.failed },
    reported: 'svc: a: agent not found\n',
  });
});
