/** Faults around teams, with the real programs: unreachable nodes, lost responses, agents that never end. */
import { readFile, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { limits } from '../src/base/limits.ts';
import type { CallArgs } from '../src/client/client.ts';
import type { EventRecord } from '../src/core/event.ts';
import { limits as mailboxLimits } from '../src/features/mailbox/limits.ts';
import type { Mail, MailHead } from '../src/features/mailbox/rules/mail.ts';
import type { Run, Step } from '../src/features/runs/rules/run.ts';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { retryWhileUnreachable } from '../src/testing/conversation.ts';
import { FlakyProxy } from '../src/testing/flaky-proxy.ts';
import { firstOf, longTest } from '../src/testing/long.ts';
import { TestPlane } from '../src/testing/plane.ts';

const AGENT = fileURLToPath(new URL('../src/testing/acp-agent.ts', import.meta.url));

let plane: TestPlane;
let node: TestAgentNode;
beforeAll(async () => {
  plane = await TestPlane.open({ env: WITH_NODES });
  node = await TestAgentNode.open(plane, { proxied: true });
});
afterAll(async () => {
  await node?.close();
  await plane?.close();
});

interface Begun {
  run_id: string;
  params: { team_id: string; run_id: string };
}

let teams = 0;

async function begin(spec: NonNullable<CallArgs<'createTeam'>['body']>['spec']): Promise<Begun> {
  const body = { name: `team ${++teams}`, spec };
  const { id: team_id } = await plane.client.call('createTeam', { body });
  const { id: run_id } = await plane.client.call('createRun', { params: { team_id }, body: {} });
  return { run_id, params: { team_id, run_id } };
}

/** A member that reports each prompt, carries it out, and waits for the next one. */
const speaker = (member_id: string, ...scenario: string[]) => ({
  member_id,
  agent: { argv: [process.execPath, AGENT, ...scenario], protocol: 'acp' as const, workdir: plane.work },
});

const outside = { member_id: 'outside' };

const runOf = ({ params }: Begun) =>
  retryWhileUnreachable(() => plane.client.call('getRun', { params })) as Promise<Run>;

async function stepOf({ params }: Begun, key: string): Promise<Step> {
  const steps = (await retryWhileUnreachable(() => plane.client.call('listSteps', { params }))) as Step[];
  return steps.find(({ step_key }) => step_key === key)!;
}

async function untilStep(run: Begun, key: string, status: Step['status']): Promise<Step> {
  for (;;) {
    const step = await stepOf(run, key);
    if (step.status === status) return step;
    await sleep(20);
  }
}

async function untilOver(run: Begun): Promise<Run> {
  for (;;) {
    const now = await runOf(run);
    if (now.ended_at !== null) return now;
    await sleep(20);
  }
}

const mailOf = async ({ run_id }: Begun) =>
  (await retryWhileUnreachable(() => plane.client.call('listRunMail', { params: { run_id } }))) as MailHead[];

/** Sends mail from ana, once per key. */
const send = (run: Begun, to_actor_id: string, key: string) =>
  plane.client.call('sendMail', { body: letter(run, to_actor_id, key), idempotency_key: key });

function letter({ run_id }: Begun, to_actor_id: string, key: string) {
  return { run_id, from_actor_id: 'user:ana', to_actor_id, payload: { key } };
}

test.each([
  ['becomes unreachable', async () => node.proxy!.hold('up', 'down'), async () => node.proxy!.release()],
  ['is killed', async () => void (await node.kill()), () => node.start()],
])('a step runs once even if its node %s and the plane is killed meanwhile', async (_what, away, back) => {
  const waits = 'echo $$ >>begun; while [ ! -e go ]; do sleep 0.05; done; rm go; echo done';
  const before = await pids();
  const run = await begin({
    members: [{ member_id: 'far', agent: { command: waits, workdir: node.work, node_id: node.id } }],
    steps: [
      { step_key: 'a', max_attempts: 5 },
      { step_key: 'b', depends_on: ['a'] },
    ],
  });
  await untilStep(run, 'a', 'running');
  await away();
  node.proxy!.cut();
  expect((await stepOf(run, 'a')).status).toBe('running');
  await plane.kill();
  // The step ends while the plane is down.
  await writeFile(join(node.work, 'go'), '');
  await plane.start();
  expect((await stepOf(run, 'a')).status).toBe('running');
  await back();
  await node.linked();
  expect(await untilStep(run, 'a', 'completed')).toMatchObject({ attempt: 1, output: 'done\n' });
  await untilStep(run, 'b', 'running');
  await writeFile(join(node.work, 'go'), '');
  expect(await untilOver(run)).toMatchObject({ status: 'completed', output: { b: 'done\n' } });
  expect((await pids()) - before).toBe(2);
});

async function pids(): Promise<number> {
  const text = await readFile(join(node.work, 'begun'), 'utf8').catch(() => '');
  return text.split('\n').length - 1;
}

test('a message that is sent ten times because of lost responses arrives once and is acknowledged once', async () => {
  const run = await begin({ members: [outside] });
  const key = 'asked-again';
  const proxy = await FlakyProxy.open(Number(new URL(plane.url).port));
  /** Sends a request whose response is lost. `path`: below `/api/actor/mailbox`. */
  const sendLosingResponse = async (path: string, body: object, arrived: () => Promise<boolean>) => {
    proxy.hold('down');
    const { host } = new URL(plane.url);
    const headers = { host, authorization: `Bearer ${plane.token}`, 'content-type': 'application/json' };
    const sent = request(`http://127.0.0.1:${proxy.port}/api/actor/mailbox${path}`, {
      method: 'POST',
      headers: { ...headers, 'idempotency-key': key },
    });
    const statuses: unknown[] = [];
    sent.on('response', (response) => statuses.push(response.statusCode)).on('error', () => {});
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    sent.on('close', resolve);
    sent.end(JSON.stringify(body));
    while (!(await arrived())) await sleep(10);
    proxy.cut();
    await closed;
    expect(statuses).toEqual([]);
    proxy.release();
  };
  try {
    await sendLosingResponse(
      '/send',
      letter(run, 'outside', key),
      async () => (await mailOf(run)).length > 0,
    );
    const again = await Promise.all(Array.from({ length: 9 }, () => send(run, 'outside', key)));
    expect(new Set(again.map(({ id }) => id)).size).toBe(1);
    await plane.kill();
    await plane.start();
    expect((await send(run, 'outside', key)).id).toBe(again[0]!.id);
    expect(await mailOf(run)).toHaveLength(1);
    const params = { message_id: String(again[0]!.id) };
    await sendLosingResponse(
      `/${again[0]!.id}/ack`,
      {},
      async () => (await mailOf(run))[0]!.status === 'acknowledged',
    );
    const acked = await plane.client.call('ackMail', { params });
    expect(await plane.client.call('ackMail', { params })).toEqual(acked);
    const inbox = { params: { actor_id: `outside@${run.params.team_id}` }, query: {} };
    expect(await plane.client.call('listMail', inbox)).toEqual([]);
  } finally {
    await proxy.close();
  }
});

longTest(
  'ten sends with one idempotency key create one message, and another payload is rejected',
  async () => {
    const key = 'svc actor send --to outside --idempotency-key k --payload';
    const ten = `for n in 1 2 3 4 5 6 7 8 9 10; do ${key} '{"n":1}' & done; wait; ${key} '{"n":2}' 2>refusal`;
    const run = await begin({
      members: [outside, { member_id: 'm', agent: { command: `${ten}; true`, workdir: plane.work } }],
      steps: [
        { step_key: 'a', member_id: 'm' },
        { step_key: 'b', member_id: 'outside', depends_on: ['a'] },
      ],
    });
    await untilStep(run, 'a', 'completed');
    expect(await mailOf(run)).toHaveLength(1);
    const refusal = await readFile(join(plane.work, 'refusal'), 'utf8');
    expect(refusal).toBe('svc: idempotency key reused with a different request\n');
  },
);

test('a plane that is killed between a message and its prompt sends the prompt once after the restart', async () => {
  const run = await begin({
    members: [speaker('m', 'flood', '1'), outside],
    steps: [
      { step_key: 'a', member_id: 'm' },
      { step_key: 'b', member_id: 'outside' },
    ],
  });
  const { agent_id } = await untilStep(run, 'a', 'completed');
  const keys = firstOf(1, ['1', '2', '3']);
  for (const key of keys) {
    await plane.kill();
    await plane.start({ SVC_FAILPOINT: `committed:kill@${key}` }).catch(() => {});
    await send(run, 'm', key).catch(() => {});
    await plane.kill();
    await plane.start();
    await retryWhileUnreachable(() => send(run, 'm', key));
    while ((await mailOf(run)).some(({ status }) => status === 'pending')) await sleep(20);
  }
  while ((await plane.get(agent_id!)).activity !== 'idle') await sleep(20);
  const { last_seq } = await plane.get(agent_id!);
  const frames = await plane.frames(agent_id!, (found) => Number(found.at(-1)!.id) >= last_seq);
  const events = frames.map(({ data }) => data as unknown as EventRecord);
  const prompts = events.filter(
    ({ direction, method }) => direction === 'to_agent' && method === 'session/prompt',
  );
  const named = JSON.stringify(prompts).matchAll(/Message (\d+) from user:ana:/g);
  expect([...named].map(([, id]) => Number(id))).toEqual((await mailOf(run)).map(({ id }) => id));
  expect(await mailOf(run)).toHaveLength(keys.length);
  await plane.client.call('cancelRun', { params: run.params });
});

longTest(
  'the hop limit stops two agents that write to each other in every turn, and the run shows it',
  {
    timeout: 240_000,
  },
  async () => {
    const writes = (to: string) => ['calls', `svc actor send --to ${to} --payload '{"text":"and you?"}'`];
    const run = await begin({
      members: [speaker('ping', ...writes('pong')), speaker('pong', ...writes('ping')), outside],
      steps: [
        { step_key: 'a', member_id: 'ping' },
        { step_key: 'b', member_id: 'pong' },
        { step_key: 'c', member_id: 'outside' },
      ],
    });
    const agents = await Promise.all(
      ['a', 'b'].map(async (key) => (await untilStep(run, key, 'completed')).agent_id!),
    );
    const isQuiet = async () => {
      const mail = await mailOf(run);
      const activities = await Promise.all(agents.map(async (id) => (await plane.get(id)).activity));
      return (
        mail.at(-1)?.status === 'dead_letter' &&
        mail.every(({ status }) => status !== 'pending') &&
        activities.every((activity) => activity === 'idle')
      );
    };
    while (!(await isQuiet())) await sleep(100);
    const { status, attention } = await runOf(run);
    expect(status).toBe('running');
    expect(attention).toMatch(/^message \d+ from p.ng@\S+ to p.ng@\S+ was not delivered: hop budget spent$/);
    const dead_letters = (await mailOf(run)).filter((mail) => mail.status === 'dead_letter');
    for (const { reason } of dead_letters) expect(reason).toBe('hop budget spent');
    // Each of the two agents starts a chain with its step.
    expect((await mailOf(run)).length).toBeLessThanOrEqual(2 * (mailboxLimits.mail_hops_max + 2));
    expect((await plane.client.call('cancelRun', { params: run.params })).status).toBe('cancelled');
  },
);

longTest('a trigger that is missed while the plane is down fires once', async () => {
  const run = await begin({ members: [outside] });
  const actor_id = `outside@${run.params.team_id}`;
  const at = new Date(Date.now() + 2_000).toISOString();
  const body = { run_id: run.run_id, at, payload: { wake: true } };
  await plane.client.call('setTrigger', { params: { actor_id }, body });
  await plane.kill();
  await sleep(Math.max(0, Date.parse(at) - Date.now()) + 50);
  for (let life = 0; life < 3; life++) {
    await plane.start();
    const query = { run_id: run.run_id, status: 'all' as const, ...(life === 0 && { wait: 60 }) };
    const mail = (await plane.client.call('listMail', { params: { actor_id }, query })) as Mail[];
    expect(mail.map(({ payload }) => payload)).toEqual([{ wake: true }]);
    expect(await plane.client.call('listTriggers', { params: { actor_id }, query: {} })).toEqual([]);
    if (life < 2) await plane.kill();
  }
});

longTest('two hundred concurrent runs complete, each with its own output', async () => {
  const spec = { members: [outside], steps: [{ step_key: 'a' }, { step_key: 'b', depends_on: ['a'] }] };
  const { params } = await begin(spec);
  const runs = await Promise.all(
    Array.from({ length: 200 }, (_, n) =>
      plane.client.call('createRun', { params: { team_id: params.team_id }, body: { input: { n } } }),
    ),
  );
  for (const step_key of ['a', 'b']) {
    await Promise.all(
      runs.map(({ id: run_id, number }) =>
        plane.client.call('completeStep', {
          params: { team_id: params.team_id, run_id, step_key },
          body: { output: number },
        }),
      ),
    );
  }
  const after = await Promise.all(
    runs.map(({ id }) => plane.client.call('findRun', { params: { run_id: id } })),
  );
  expect(after.map(({ status, output }) => [status, output])).toEqual(
    runs.map(({ number }) => ['completed', { b: number }]),
  );
});

longTest('a run of 2,048 steps completes, half of them in parallel and half in a chain', async () => {
  const half = limits.team_steps_max / 2;
  const chain = (n: number) => ({ step_key: `c${n}`, depends_on: n === 0 ? [] : [`c${n - 1}`] });
  const fan = (n: number) => ({ step_key: `f${n}`, depends_on: [`c${half - 1}`] });
  const all = (of: (n: number) => { step_key: string }) => Array.from({ length: half }, (_, n) => of(n));
  const run = await begin({ members: [outside], steps: [...all(fan), ...all(chain)] });
  const complete = ({ step_key }: { step_key: string }) =>
    plane.client.call('completeStep', { params: { ...run.params, step_key }, body: { output: step_key } });
  for (const step of all(chain)) await complete(step);
  await Promise.all(all(fan).map(complete));
  const { status, output } = await runOf(run);
  expect(status).toBe('completed');
  expect(output).toEqual(Object.fromEntries(all(fan).map(({ step_key }) => [step_key, step_key])));
});
