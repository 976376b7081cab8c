/**
 * Long-poll reads on the node. Streams are strings in memory, and the test plays the part of the plane. One test uses a
 * real link.
 */
import { create } from '@bufbuild/protobuf';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import type { StreamName } from '../../core/event.ts';
import { problems } from '../../core/problem.ts';
import { openTestNodeServer, remoteNode } from '../../testing/remote-node.ts';
import { type PullRequest, PullRequestSchema, type PullResponse } from '../proto/node_pb.ts';
import { type Grown, servePull } from './pulling.ts';

let streams: Record<StreamName, string> | null;
let looks: number;
/** The disk cannot read this stream. */
let broken: StreamName | null;
/** Runs once, between a check and its answer. */
let meanwhile: () => void;
let grown: Grown;
let plane_side: ReadableStreamDefaultController<PullRequest>;
let responses: AsyncGenerator<PullResponse>;
/** The next answer. Requesting it makes the node check its reads. */
let next: Promise<IteratorResult<PullResponse>>;

const node = {
  read: async (_session_id: string, stream: StreamName, from: number, max: number) => {
    looks++;
    if (!streams) throw problems.sessionNotFound();
    if (stream === broken) throw Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO' });
    if (from > streams[stream].length) throw problems.outputLost();
    const bytes = Buffer.from(streams[stream].slice(from, from + max));
    meanwhile();
    return bytes;
  },
};

beforeEach(() => {
  streams = { stdout: '', stderr: '' };
  looks = 0;
  broken = null;
  meanwhile = () => {};
  const requests = new ReadableStream<PullRequest>({
    start: (controller) => {
      plane_side = controller;
    },
  });
  const watch = (pull: Grown) => {
    grown = pull;
  };
  responses = servePull(node, requests.values(), { watch, log: silentLog });
  next = responses.next();
});
afterEach(async () => {
  plane_side.close();
  expect((await next).done).toBe(true);
  expect(grown('ses_a')).toBe(false);
});

/** Sends a request, and waits until all reads were checked. */
async function ask(
  id: number,
  stream: StreamName,
  from = 0,
  more: { max?: number; longPoll?: boolean } = {},
) {
  const read = { id, sessionId: 'ses_a', stream, from: BigInt(from), max: 100, longPoll: true, ...more };
  plane_side.enqueue(create(PullRequestSchema, { reads: [read] }));
  await turns();
}

async function turns(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise(setImmediate);
}

/** For each chunk: the read, the bytes, and a dot if it is the last one. For an error: the read and the code. */
async function answered(): Promise<string[]> {
  const { value } = await next;
  next = responses.next();
  const { chunks, refused } = value as PullResponse;
  const received = chunks.map(({ id, data, last }) => `${id} ${Buffer.from(data)}${last ? '.' : ''}`);
  return [...received, ...refused.map(({ id, refusal }) => `${id} ${refusal?.code}`)];
}

test('a long-poll read is answered as its stream grows, until its limit', async () => {
  await ask(1, 'stdout', 0, { max: 9 });
  streams!.stdout += 'one';
  expect(grown('ses_a')).toBe(false);
  expect(await answered()).toEqual(['1 one']);
  streams!.stdout += 'two';
  grown('ses_a');
  expect(await answered()).toEqual(['1 two']);
  streams!.stdout += 'threefour';
  grown('ses_a');
  expect(await answered()).toEqual(['1 thr.']);
  expect(grown('ses_a')).toBe(false);
  await ask(2, 'stdout', 9, { longPoll: false });
  expect(await answered()).toEqual(['2 eefour.']);
});

test('existing bytes are sent at once, and a normal read ends at the end of the stream', async () => {
  streams!.stdout = 'abc';
  await ask(1, 'stdout');
  expect(await answered()).toEqual(['1 abc']);
  await ask(2, 'stderr', 0, { longPoll: false });
  expect(await answered()).toEqual(['2 .']);
});

test('a wake is omitted only if both streams have a long-poll read', async () => {
  expect(grown('ses_a')).toBe(false);
  await ask(1, 'stdout');
  expect(grown('ses_a')).toBe(false);
  await ask(2, 'stderr');
  expect(grown('ses_a')).toBe(true);
  expect(grown('ses_b')).toBe(false);
  streams = { stdout: 'out', stderr: 'err' };
  expect(grown('ses_a')).toBe(true);
  expect((await answered()).sort()).toEqual(['1 out', '2 err']);
});

test('growth during a check causes another check', async () => {
  meanwhile = () => {
    meanwhile = () => {};
    streams!.stdout += 'late';
    grown('ses_a');
  };
  await ask(1, 'stdout');
  expect(await answered()).toEqual(['1 late']);
  expect(looks).toBe(2);
});

test('a new long-poll read replaces the one for the same stream', async () => {
  await ask(1, 'stdout');
  await ask(2, 'stderr');
  await ask(3, 'stdout');
  expect(await answered()).toEqual(['1 .']);
  streams!.stdout = 'abc';
  expect(grown('ses_a')).toBe(true);
  expect(await answered()).toEqual(['3 abc']);
});

test('lost bytes and a forgotten session end a long-poll read', async () => {
  streams!.stdout = 'abc';
  await ask(1, 'stdout', 3);
  await ask(2, 'stderr');
  streams!.stdout = '';
  expect(grown('ses_a')).toBe(true);
  expect(await answered()).toEqual(['1 output_lost']);
  expect(grown('ses_a')).toBe(false);
  streams = null;
  grown('ses_a');
  expect(await answered()).toEqual(['2 session_not_found']);
});

test('a stream that cannot be read is refused, and the other one is served', async () => {
  streams = { stdout: 'out', stderr: 'err' };
  broken = 'stdout';
  await ask(1, 'stdout');
  expect(await answered()).toEqual(['1 output_unreadable']);
  await ask(2, 'stderr');
  expect(await answered()).toEqual(['2 err']);
  broken = null;
  await ask(3, 'stdout');
  expect(await answered()).toEqual(['3 out']);
});

test('a line arrives at a session’s reader over a link without a request', async () => {
  let sink: { wake(session_id: string): void } | null = null;
  const local = {
    ...node,
    id: 'main',
    attach: async (plane_link: never) => {
      sink = plane_link;
    },
    detach: async () => {},
    forget: async () => {
      streams = null;
    },
  };
  const server = await openTestNodeServer(local as never);
  const plane = remoteNode(() => server.port);
  let woken = Promise.withResolvers<string>();
  try {
    await plane.attach({ snapshot: async () => {}, fact: () => {}, wake: (id) => woken.resolve(id) });
    for (const stream of ['stdout', 'stderr'] as const) await plane.read('ses_a', stream, 0, 100);
    while (looks < 4) await turns();
    for (let n = 0; n < 3; n++) {
      woken = Promise.withResolvers();
      streams!.stdout += `line ${n}\n`;
      sink!.wake('ses_a');
      expect(await woken.promise).toBe('ses_a');
      const before = looks;
      expect(Buffer.from(await plane.read('ses_a', 'stdout', n * 7, 100)).toString()).toBe(`line ${n}\n`);
      expect(await plane.read('ses_a', 'stderr', 0, 100)).toHaveLength(0);
      expect(looks).toBe(before);
    }
    broken = 'stdout';
    const temporary = { kind: 'unavailable', code: 'output_unreadable' };
    await expect(plane.read('ses_a', 'stdout', 0, 7)).rejects.toMatchObject(temporary);
    broken = null;
    expect(await plane.read('ses_a', 'stdout', 0, 7)).toHaveLength(7);
    const before = looks;
    await plane.forget('ses_a');
    while (looks < before + 2) await turns();
  } finally {
    await plane.detach();
    await server.close();
  }
});
