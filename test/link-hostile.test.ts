/** A hostile node: it has a valid certificate and the plane's trust, and breaks the rules of the link. */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { type Answers, HostileNode, type HostileOptions } from '../src/testing/hostile-node.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { expectNothingLost, startWriters } from '../src/testing/writers.ts';

let plane: TestPlane;
let honest: TestAgentNode;
let evil: HostileNode;
let opened = 0;
/** The session of a running agent on the honest node. */
let honest_session: string;

beforeAll(async () => {
  plane = await TestPlane.open({ env: WITH_NODES });
  honest = await TestAgentNode.open(plane, { id: 'honest' });
});
afterEach(async () => {
  await evil.close();
});
afterAll(async () => {
  await honest?.close();
  await plane?.close();
});

async function openEvil(behavior: HostileOptions): Promise<void> {
  evil = new HostileNode(`evil${++opened}`, behavior);
  await evil.join(plane);
}

async function memory(): Promise<number> {
  const status = await readFile(`/proc/${plane.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)![1]) * 1024;
}

const MIB = 1024 * 1024;
const untilLinkEnds = () => evil.link_ended;
const page = (sessions: object[], last = true) =>
  ({ body: { case: 'snapshot', value: { sessions, last } } }) as never;
/** The id of a session on this test's node. */
const own = () => `ses_${'e'.repeat(14)}${10 + opened}`;
const session = (more: object = {}) => ({
  sessionId: own(),
  launch: {
    planeId: 'pln_x',
    agentId: own().replace('ses', 'agt'),
    agentName: 'evil',
    ownerId: 'usr_x',
    workdir: '/',
    argv: ['true'],
  },
  phase: 'running',
  stdinBytes: 0n,
  facts: [
    {
      sessionId: own(),
      number: 1n,
      atMs: 1n,
      body: { case: 'started', value: { pid: 1n, startedAtMs: 1n } },
    },
  ],
  ...more,
});
const fact = (number: number, body: object | undefined, sessionId = own()) =>
  ({
    body: { case: 'fact', value: { sessionId, number: BigInt(number), atMs: 1n, ...(body && { body }) } },
  }) as never;
const warning = (details: object) => ({
  case: 'trouble',
  value: { code: 'output_paused', error: 'x', details: JSON.stringify(details) },
});
async function* quiet(): Answers {
  yield page([]);
  await untilLinkEnds();
}

test.each<[name: string, evil: HostileOptions, logged: RegExp]>([
  [
    'sends a snapshot with endless sessions',
    {
      attach: async function* () {
        const argv = ['x'.repeat(1_000_000)];
        for (let n = 0; ; n++)
          yield page(
            [
              {
                ...session({ sessionId: `ses_${String(n).padStart(16, '0')}` }),
                launch: { ...session().launch, argv },
              },
            ],
            false,
          );
      },
    },
    /the snapshot has too many pages/,
  ],
  [
    'sends a frame of 100 MB',
    {
      attach: async function* () {
        yield { body: { case: 'wakes', value: { sessionIds: ['x'.repeat(100 * MIB)] } } } as never;
        await untilLinkEnds();
      },
    },
    /"node_id":"evil\d+".*a node is not linked/,
  ],
  [
    'sends facts out of order',
    {
      attach: async function* () {
        yield page([session()]);
        yield fact(3, undefined);
        await untilLinkEnds();
      },
    },
    /fact 3 of ses_e+\d+ instead of 2/,
  ],
  [
    'sends endless facts of a session',
    {
      attach: async function* () {
        yield page([session()]);
        for (let n = 2; ; n++)
          yield fact(n, warning({ seq: 7, agent_id: 'agt_other', text: 'x'.repeat(100) }));
      },
    },
    /too many facts of one session|"node_id":"evil\d+".*the link to a node is down/,
  ],
  [
    'sends endless requests to the plane and reads no response',
    {
      attach: async function* () {
        yield page([]);
        for (let id = 1; ; id++)
          yield { body: { case: 'upcall', value: { id, method: 'x', params: '{}', token: 't' } } } as never;
      },
    },
    /too many calls at once/,
  ],
  [
    'sends a time that is out of range',
    {
      attach: async function* () {
        yield page([session({ startedAtMs: 9n * 10n ** 15n })]);
        await untilLinkEnds();
      },
    },
    /a time out of range/,
  ],
  [
    'sends bytes that were not requested',
    {
      attach: quiet,
      calls: {
        pull: async function* () {
          yield { chunks: [{ id: 7, data: new Uint8Array(10), last: true }] };
          await untilLinkEnds();
        },
      },
    },
    /bytes that were not requested/,
  ],
  [
    'answers a read with more bytes than requested',
    {
      attach: async function* () {
        yield page([session()]);
        await untilLinkEnds();
      },
      calls: {
        pull: async function* (requests) {
          for await (const { reads } of requests) {
            const id = reads[0]?.id;
            while (id !== undefined) yield { chunks: [{ id, data: new Uint8Array(MIB), last: false }] };
          }
        },
      },
    },
    /bytes that were not requested/,
  ],
  [
    'reports a session of another node',
    {
      attach: async function* () {
        yield page([session({ sessionId: honest_session, phase: 'ended' })]);
        const end = { case: 'ended', value: { exitCode: 1, endedAtMs: 1n } };
        yield fact(2, end, honest_session);
        await untilLinkEnds();
      },
    },
    /fact 2 of ses_\w+ instead of 1|a node reported another node's session; ignoring it/,
  ],
  [
    'has an incompatible version',
    { hello: { protocol: 3, protocolMin: 2 }, attach: quiet },
    /this plane \(svc [^,]+, protocol 1\) is too old for node evil\d+ \(svc 9\.9\.9, protocol 3\), which needs protocol 2/,
  ],
  [
    'claims another id',
    { hello: { nodeId: 'honest' }, attach: quiet },
    /node id mismatch: registered evil\d+, node says honest/,
  ],
  [
    'sends an oversized hello',
    { hello: { instanceId: 'x'.repeat(1_000_000) }, attach: quiet },
    /the hello is too long/,
  ],
])('a node that %s affects neither the plane nor other nodes', async (_name, behavior, logged) => {
  await rm(join(honest.work, 'stop'), { force: true });
  const writers = await startWriters(plane, honest, [[`w${opened}`, '20', '80']]);
  honest_session = (await plane.get(writers[0]!.id)).session_id!;
  const before = await memory();
  const from = plane.log.length;
  await openEvil(behavior);
  while (!logged.test(plane.log.slice(from))) await sleep(20);
  expect((await memory()) - before).toBeLessThan(400 * MIB);
  expect((await honest.record()).status).toBe('connected');
  await expectNothingLost(plane, honest, writers);
});

test('a session that ends with missing output bytes is ended, and the loss is reported', async () => {
  await openEvil({
    attach: async function* () {
      yield page([session()]);
      yield fact(2, { case: 'ended', value: { exitCode: 0, stdoutBytes: 10n ** 15n, endedAtMs: 1n } });
      await untilLinkEnds();
    },
    calls: {
      pull: async function* (requests) {
        for await (const { reads } of requests) {
          yield { chunks: reads.map(({ id }) => ({ id, data: new Uint8Array(), last: true })) };
        }
      },
    },
  });
  const id = own().replace('ses', 'agt');
  while (!(await plane.get(id).catch(() => null))) await sleep(20);
  expect((await plane.finished(id)).status).toBe('completed');
  const frames = await plane.frames(id, (all) => all.some(({ data }) => data.status === 'completed'));
  expect(frames.map(({ data }) => data.code)).toContain('output_truncated');
});
