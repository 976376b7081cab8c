/** Calls of actors on their way up a link: what becomes of them when the plane answers, is slow, or goes. */
import { create } from '@bufbuild/protobuf';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { limits } from '../base/limits.ts';
import {
  type AttachRequest,
  AttachRequestSchema,
  type AttachResponse,
  type Upcall,
} from '../contract/gen/node_pb.ts';
import type { Node } from '../domain/node.ts';
import { Problem } from '../domain/problem.ts';
import { SOON } from '../testing/lives.ts';
import { openTestDoor, remoteNode } from '../testing/remote-node.ts';
import { Attached } from './attached.ts';

const unreachable = { code: 'node_unreachable', message: 'failed to connect to remote node' };

/** A link whose plane is the test. */
class Link {
  readonly attached: Attached;
  readonly #responses: AsyncGenerator<AttachResponse>;
  #answer = Promise.withResolvers<AttachRequest>();
  readonly taken: Promise<unknown>;

  constructor() {
    const node = { attach: async () => {} } as Partial<Node> as Node;
    this.attached = new Attached(node, { plane_id: 'pln_a', incarnation: 1, epoch: 1 });
    this.#responses = this.attached.responses();
    this.taken = this.attached.take(this.#requests()).catch((error: Error) => error.message);
  }

  async open(): Promise<void> {
    expect((await this.#responses.next()).value.body.case).toBe('snapshot');
  }

  /** The next call that came up. */
  async next(): Promise<Upcall> {
    const { body } = (await this.#responses.next()).value as AttachResponse;
    if (body.case !== 'upcall') throw new Error(`${body.case} came up`);
    return body.value;
  }

  answer(id: number, result: unknown): void {
    const value = { id, outcome: { case: 'result', value: JSON.stringify(result) } } as const;
    this.#answer.resolve(create(AttachRequestSchema, { body: { case: 'reply', value } }));
  }

  async *#requests(): AsyncGenerator<AttachRequest> {
    for (;;) {
      const answer = await this.#answer.promise;
      this.#answer = Promise.withResolvers();
      yield answer;
    }
  }
}

let link: Link;

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  link = new Link();
  await link.open();
});
afterEach(() => {
  vi.useRealTimers();
});

test('a call goes up with its token, and its own answer comes back', async () => {
  const first = link.attached.upcall('one', { a: 1 }, 'token');
  const second = link.attached.upcall('two', null, 'other');
  const [one, two] = [await link.next(), await link.next()];
  expect(one).toMatchObject({ method: 'one', params: '{"a":1}', token: 'token' });
  link.answer(two.id, 'second');
  expect(await second).toBe('second');
  link.answer(one.id, { is: 'first' });
  expect(await first).toEqual({ is: 'first' });
});

test('a plane that says nothing for long is out of reach; what it says later is nobody’s, and no fault', async () => {
  const late = link.attached.upcall('late', {}, 'token');
  const { id } = await link.next();
  vi.advanceTimersByTime(limits.actor_call_ms);
  await expect(late).rejects.toMatchObject(unreachable);
  link.answer(id, 'late');
  const next = link.attached.upcall('next', {}, 'token');
  link.answer((await link.next()).id, 'in time');
  expect(await next).toBe('in time');
});

test('a call that could not even be sent is forgotten', async () => {
  const waiting = link.attached.upcall('waiting', {}, 'token');
  vi.advanceTimersByTime(limits.actor_call_ms);
  await expect(waiting).rejects.toMatchObject(unreachable);
  void link.attached.upcall('next', {}, 'token').catch(() => {});
  expect((await link.next()).method).toBe('next');
});

test('what waits when the link ends, and what comes after, is out of reach at once', async () => {
  const waiting = link.attached.upcall('waiting', {}, 'token');
  await link.next();
  link.attached.end();
  await expect(waiting).rejects.toMatchObject(unreachable);
  await expect(link.attached.upcall('after', {}, 'token')).rejects.toMatchObject(unreachable);
});

test('no more calls wait than a link may have', async () => {
  const calls = [];
  for (let i = 0; i < limits.link_upcalls_max; i++) calls.push(link.attached.upcall('m', {}, 't'));
  await expect(link.attached.upcall('m', {}, 't')).rejects.toMatchObject(unreachable);
  const outcomes = Promise.allSettled(calls);
  link.attached.end();
  expect((await outcomes).every(({ status }) => status === 'rejected')).toBe(true);
});

test('an answer to no call ends the link', async () => {
  link.answer(7, null);
  expect(await link.taken).toBe('a reply that nobody waits for');
});

test('over a real link the plane’s answer and its refusal come back in its own words', async () => {
  vi.useRealTimers();
  const none = { attach: async () => {}, detach: async () => {}, id: 'main' } as Partial<Node> as Node;
  const door = await openTestDoor(none as never);
  const calls: unknown[] = [];
  const plane = remoteNode(() => door.port, {
    upcall: async (call) => {
      calls.push(call);
      if (call.method === 'refused') throw new Problem('forbidden', 'not_allowed', 'not allowed to act as x');
      if (call.method === 'broken') throw new Error('inside');
      return call.params;
    },
  });
  try {
    await expect(door.upcall('m', {}, 't')).rejects.toMatchObject(unreachable);
    // The snapshot of a node that has nothing comes with its first page all the same.
    await plane.attach({ snapshot: async () => {}, fact: () => {}, wake: () => {} });
    expect(await door.upcall('m', { text: 'ü'.repeat(100_000) }, 't')).toEqual({ text: 'ü'.repeat(100_000) });
    const refused = { kind: 'forbidden', code: 'not_allowed', message: 'not allowed to act as x' };
    await expect(door.upcall('refused', {}, 't')).rejects.toMatchObject(refused);
    await expect(door.upcall('broken', {}, 't')).rejects.toThrow('internal server error');
    expect(calls).toHaveLength(3);
    await plane.detach();
    await vi.waitFor(() => expect(door.upcall('m', {}, 't')).rejects.toMatchObject(unreachable), SOON);
  } finally {
    await plane.detach();
    await door.close();
  }
});
