/** Actor calls that a node sends to the plane: when the plane answers, is slow, or disconnects. */
import { create, toBinary } from '@bufbuild/protobuf';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { KIB, MIB } from '../../base/limits.ts';
import { directLink, type Node, type NodeSink } from '../../core/node.ts';
import { Problem } from '../../core/problem.ts';
import { SOON } from '../../testing/features-fixture.ts';
import { launchOf } from '../../testing/node-suite.ts';
import { openTestNodeServer, remoteNode } from '../../testing/remote-node.ts';
import { limits } from '../limits.ts';
import {
  type AttachRequest,
  AttachRequestSchema,
  type AttachResponse,
  SnapshotPageSchema,
  type Upcall,
} from '../proto/node_pb.ts';
import { PlaneLink } from './plane-link.ts';

const unreachable = { code: 'node_unreachable', message: 'failed to connect to remote node' };

/** A link on which the test acts as the plane. */
class Link {
  readonly plane_link: PlaneLink;
  readonly #responses: AsyncGenerator<AttachResponse>;
  #answer = Promise.withResolvers<AttachRequest>();
  readonly taken: Promise<unknown>;

  constructor(node = { attach: async () => {} } as Partial<Node> as Node) {
    this.plane_link = new PlaneLink(node, { plane_id: 'pln_a', incarnation: 1, epoch: 1 });
    this.#responses = this.plane_link.responses();
    this.taken = this.plane_link.take(this.#requests()).catch((error: Error) => error.message);
  }

  async open(): Promise<void> {
    expect((await this.#responses.next()).value.body.case).toBe('snapshot');
  }

  /** The next call that the node sent. */
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

test('a call is sent to the plane with its token, and gets its own answer', async () => {
  const first = link.plane_link.upcall('one', '{"a":1}', 'token');
  const second = link.plane_link.upcall('two', 'null', 'other');
  const [one, two] = [await link.next(), await link.next()];
  expect(one).toMatchObject({ method: 'one', params: '{"a":1}', token: 'token' });
  link.answer(two.id, 'second');
  expect(await second).toBe('second');
  link.answer(one.id, { is: 'first' });
  expect(await first).toEqual({ is: 'first' });
});

test('a silent plane counts as unreachable; its late answer is ignored without an error', async () => {
  const late = link.plane_link.upcall('late', '{}', 'token');
  const { id } = await link.next();
  vi.advanceTimersByTime(limits.actor_call_ms);
  await expect(late).rejects.toMatchObject(unreachable);
  link.answer(id, 'late');
  const next = link.plane_link.upcall('next', '{}', 'token');
  link.answer((await link.next()).id, 'in time');
  expect(await next).toBe('in time');
});

test('forgets a call that could not be sent', async () => {
  const waiting = link.plane_link.upcall('waiting', '{}', 'token');
  vi.advanceTimersByTime(limits.actor_call_ms);
  await expect(waiting).rejects.toMatchObject(unreachable);
  void link.plane_link.upcall('next', '{}', 'token').catch(() => {});
  expect((await link.next()).method).toBe('next');
});

test('when the link ends, waiting and later calls fail as unreachable at once', async () => {
  const waiting = link.plane_link.upcall('waiting', '{}', 'token');
  await link.next();
  link.plane_link.end();
  await expect(waiting).rejects.toMatchObject(unreachable);
  await expect(link.plane_link.upcall('after', '{}', 'token')).rejects.toMatchObject(unreachable);
});

test('limits the number of waiting calls', async () => {
  const calls = [];
  for (let i = 0; i < limits.link_upcalls_max; i++) calls.push(link.plane_link.upcall('m', '{}', 't'));
  await expect(link.plane_link.upcall('m', '{}', 't')).rejects.toMatchObject(unreachable);
  const outcomes = Promise.allSettled(calls);
  link.plane_link.end();
  expect((await outcomes).every(({ status }) => status === 'rejected')).toBe(true);
});

test('an answer to an unknown call ends the link', async () => {
  link.answer(7, null);
  expect(await link.taken).toBe('a reply to an unknown call');
});

test('the plane’s answer and its error message arrive unchanged over a real link', async () => {
  vi.useRealTimers();
  const none = { attach: async () => {}, detach: async () => {}, id: 'main' } as Partial<Node> as Node;
  const server = await openTestNodeServer(none as never);
  const calls: unknown[] = [];
  const plane = remoteNode(() => server.port, {
    upcall: async (call) => {
      calls.push(call);
      if (call.method === 'refused') throw new Problem('forbidden', 'not_allowed', 'not allowed to act as x');
      if (call.method === 'broken') throw new Error('inside');
      return call.params;
    },
  });
  try {
    await expect(server.upcall('m', '{}', 't')).rejects.toMatchObject(unreachable);
    // The snapshot of an empty node still has a first page.
    await plane.attach({ snapshot: async () => {}, fact: () => {}, wake: () => {} });
    const text = 'ü'.repeat(100_000);
    expect(await server.upcall('m', JSON.stringify({ text }), 't')).toEqual({ text });
    await expect(server.upcall('m', '{', 't')).rejects.toThrow('params must be JSON');
    const refused = { kind: 'forbidden', code: 'not_allowed', message: 'not allowed to act as x' };
    await expect(server.upcall('refused', '{}', 't')).rejects.toMatchObject(refused);
    await expect(server.upcall('broken', '{}', 't')).rejects.toThrow('internal server error');
    expect(calls).toHaveLength(3);
    await plane.detach();
    await vi.waitFor(() => expect(server.upcall('m', '{}', 't')).rejects.toMatchObject(unreachable), SOON);
  } finally {
    await plane.detach();
    await server.close();
  }
});

test('no call and no answer is too large for the link', async () => {
  vi.useRealTimers();
  const none = { attach: async () => {}, detach: async () => {}, id: 'main' } as Partial<Node> as Node;
  const server = await openTestNodeServer(none as never);
  const large = { result: 'x'.repeat(5 * MIB), message: '\ud800'.repeat(2 * MIB) };
  const plane = remoteNode(() => server.port, {
    upcall: async ({ method, params }) => {
      if (method === 'refused') throw new Problem('forbidden', 'not_allowed', large.message);
      return method === 'large' ? large.result : (params as unknown[]).length;
    },
  });
  try {
    await plane.attach({ snapshot: async () => {}, fact: () => {}, wake: () => {} });
    const { link } = plane;
    // Parsed and serialized again, it would have 4.6 million bytes.
    const items = Math.floor(MIB / '1e20,'.length) - 1;
    expect(await server.upcall('m', `[${Array(items).fill('1e20').join(',')}]`, 't')).toBe(items);
    const too_large = { code: 'actor_call_too_large' };
    await expect(server.upcall('m', `"${large.result}"`, 't')).rejects.toMatchObject(too_large);
    await expect(server.upcall('large', '{}', 't')).rejects.toMatchObject({ code: 'actor_result_too_large' });
    await expect(server.upcall('refused', '{}', 't')).rejects.toMatchObject({ code: 'not_allowed' });
    expect(await server.upcall('m', '[]', 't')).toBe(0);
    expect(plane.link).toBe(link);
  } finally {
    await plane.detach();
    await server.close();
  }
});

test('pages of a snapshot are bounded in bytes', async () => {
  vi.useRealTimers();
  const argv = ['\u4e2d'.repeat(60_000)];
  const view = {
    ...{ session_id: 'ses_a', launch: { ...launchOf('/', argv), env_keys: [] }, phase: 'running' as const },
    ...{ pid: 1, started_at_ms: 1, end: null, stdin_bytes: 0, facts: [] },
  };
  const node = {
    attach: async (sink: NodeSink) => sink.snapshot(Array(20).fill(view), directLink('main'), []),
  } as Partial<Node> as Node;
  const { plane_link } = new Link(node);
  let sessions = 0;
  for await (const { body } of plane_link.responses()) {
    if (body.case !== 'snapshot') throw new Error(body.case);
    expect(toBinary(SnapshotPageSchema, body.value).length).toBeLessThan(limits.link_page_bytes + KIB);
    sessions += body.value.sessions.length;
    if (body.value.last) break;
  }
  expect(sessions).toBe(20);
});
