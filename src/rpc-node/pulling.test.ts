/** Reads that stand, at the node's end: streams are strings in memory, the plane is the test. And once over a real link. */
import { create } from '@bufbuild/protobuf';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type PullRequest, PullRequestSchema, type PullResponse } from '../contract/gen/node_pb.ts';
import type { StreamName } from '../domain/event.ts';
import { problems } from '../domain/problem.ts';
import { openTestDoor, remoteNode } from '../testing/remote-node.ts';
import { type Grown, servePull } from './pulling.ts';

let streams: Record<StreamName, string> | null;
let looks: number;
/** Happens once, after a look and before its answer. */
let meanwhile: () => void;
let grown: Grown;
let asking: ReadableStreamDefaultController<PullRequest>;
let responses: AsyncGenerator<PullResponse>;
/** The answer that is waited for: what is asked is looked at only then. */
let next: Promise<IteratorResult<PullResponse>>;

const node = {
  read: async (_session_id: string, stream: StreamName, from: number, max: number) => {
    looks++;
    if (!streams) throw problems.sessionNotFound();
    if (from > streams[stream].length) throw problems.outputLost();
    const bytes = Buffer.from(streams[stream].slice(from, from + max));
    meanwhile();
    return bytes;
  },
};

beforeEach(() => {
  streams = { stdout: '', stderr: '' };
  looks = 0;
  meanwhile = () => {};
  const requests = new ReadableStream<PullRequest>({
    start: (controller) => {
      asking = controller;
    },
  });
  responses = servePull(node, requests.values(), (watch) => {
    grown = watch;
  });
  next = responses.next();
});
afterEach(async () => {
  asking.close();
  expect((await next).done).toBe(true);
  expect(grown('ses_a')).toBe(false);
});

/** Asks, and waits until everything was looked at. */
async function ask(
  id: number,
  stream: StreamName,
  from = 0,
  more: { max?: number; standing?: boolean } = {},
) {
  const read = { id, sessionId: 'ses_a', stream, from: BigInt(from), max: 100, standing: true, ...more };
  asking.enqueue(create(PullRequestSchema, { reads: [read] }));
  await turns();
}

async function turns(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise(setImmediate);
}

/** Of every chunk its read, its bytes, and a point when it is the last; of a refusal its code. */
async function answered(): Promise<string[]> {
  const { value } = await next;
  next = responses.next();
  const { chunks, refused } = value as PullResponse;
  const told = chunks.map(({ id, data, last }) => `${id} ${Buffer.from(data)}${last ? '.' : ''}`);
  return [...told, ...refused.map(({ id, refusal }) => `${id} ${refusal?.code}`)];
}

test('a read that stands is answered when its stream has grown, until it brought all that it may', async () => {
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
  await ask(2, 'stdout', 9, { standing: false });
  expect(await answered()).toEqual(['2 eefour.']);
});

test('what is there already is told at once, and what is not asked to stand ends at the end', async () => {
  streams!.stdout = 'abc';
  await ask(1, 'stdout');
  expect(await answered()).toEqual(['1 abc']);
  await ask(2, 'stderr', 0, { standing: false });
  expect(await answered()).toEqual(['2 .']);
});

test('a wake is spared only where both streams have a read that stands', async () => {
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

test('what grows while it is looked at is looked at again', async () => {
  meanwhile = () => {
    meanwhile = () => {};
    streams!.stdout += 'late';
    grown('ses_a');
  };
  await ask(1, 'stdout');
  expect(await answered()).toEqual(['1 late']);
  expect(looks).toBe(2);
});

test('another one for the same stream takes its place', async () => {
  await ask(1, 'stdout');
  await ask(2, 'stderr');
  await ask(3, 'stdout');
  expect(await answered()).toEqual(['1 .']);
  streams!.stdout = 'abc';
  expect(grown('ses_a')).toBe(true);
  expect(await answered()).toEqual(['3 abc']);
});

test('bytes that are lost, and a session that is forgotten, refuse what stands there', async () => {
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

test('over a link a line comes to a session’s reader without being asked for', async () => {
  let sink: { wake(session_id: string): void } | null = null;
  const local = {
    ...node,
    id: 'main',
    attach: async (attached: never) => {
      sink = attached;
    },
    detach: async () => {},
    forget: async () => {
      streams = null;
    },
  };
  const door = await openTestDoor(local as never);
  const plane = remoteNode(() => door.port);
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
    const before = looks;
    await plane.forget('ses_a');
    while (looks < before + 2) await turns();
  } finally {
    await plane.detach();
    await door.close();
  }
});
