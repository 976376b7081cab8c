/** A control plane that runs no agents itself (`server.local_node = false`), with real processes. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { requesterOf } from '../src/testing/http.ts';
import { TestPlane } from '../src/testing/plane.ts';

const REMOTE_ONLY = { SVC_SERVER_LOCAL_NODE: 'false' };
const CHOOSE = 'this control plane runs no agents itself: choose a node';
let plane: TestPlane;
let node: TestAgentNode | undefined;

beforeAll(async () => {
  plane = await TestPlane.prepare({ env: { ...WITH_NODES, ...REMOTE_ONLY, SVC_AGENTS_SANDBOX: 'bwrap' } });
  // With agents in a sandbox, the service would refuse a safe path that contains its data.
  await plane.start({ SVC_SAFE_PATHS: plane.folder });
  await plane.join();
});
afterAll(async () => {
  await node?.close();
  await plane.close();
});

const request = requesterOf(() => plane);

async function refusal(method: string, path: string, body?: unknown): Promise<unknown> {
  const answer = await request(method, path, body);
  expect(answer.status).toBe(409);
  return (answer.body as { error: string }).error;
}

test('agents run on the only registered node, which requests need not name', async () => {
  const agent = { name: 'a', command: 'echo here' };
  expect(plane.log).not.toMatch(/sandbox|agents run as/);
  expect((await request('GET', '/api/nodes')).body).toEqual([]);
  expect((await request('GET', '/api/admin/diagnosis')).body).toMatchObject({ folders: [] });
  for (const node_id of [undefined, 'main']) {
    expect(await refusal('POST', '/api/agents', { ...agent, node_id })).toMatch(/has no nodes: register one/);
  }

  node = await TestAgentNode.open(plane);
  expect((await request('GET', '/api/nodes')).body).toMatchObject([{ id: 'n1', status: 'connected' }]);
  expect((await request('GET', '/api/admin/node-measurements')).body).toMatchObject([{ node_id: 'n1' }]);
  const made = await plane.agent('echo here', { workdir: node.work });
  expect(made).toMatchObject({ node_id: 'n1' });
  expect((await plane.finished(made.id)).status).toBe('completed');
  expect(String(await plane.output(made.id))).toBe('here\n');

  expect(await refusal('POST', '/api/agents', { ...agent, node_id: 'main' })).toBe(CHOOSE);
  expect(await refusal('GET', '/api/presets?node_id=main')).toBe(CHOOSE);
  expect(await refusal('GET', '/api/nodes/main/repositories')).toBe(CHOOSE);
  expect((await request('GET', '/api/presets')).status).toBe(200);
  const listed = await plane.cli(['nodes', 'repositories', '--json']);
  expect(JSON.parse(listed.stdout)).toMatchObject({ roots: [node.work] });
});

test('agents of teams run on the only registered node too', async () => {
  const member = (agent: object) => ({ members: [{ member_id: 'm', agent: { command: 'true', ...agent } }] });
  const team = { name: 'crew', spec: { ...member({ workdir: node!.work }), steps: [{ step_key: 's' }] } };
  const created = await request('POST', '/api/teams', team);
  expect(created).toMatchObject({
    status: 201,
    body: { spec: { members: [{ agent: { node_id: 'n1' } }] } },
  });
  const { id } = created.body as { id: string };
  const change = { version: 1, spec: member({ node_id: 'main' }) };
  expect(await refusal('PUT', `/api/teams/${id}`, change)).toBe(CHOOSE);
  const run = await request('POST', `/api/teams/${id}/runs`, {});
  const path = `/api/teams/${id}/runs/${(run.body as { id: string }).id}`;
  await expect.poll(async () => (await request('GET', path)).body).toMatchObject({ status: 'completed' });
});

test('with several nodes, requests must name one', async () => {
  const second = { id: 'n2', name: 'n2', grpc_target: 'https://127.0.0.1:9' };
  expect((await request('POST', '/api/admin/agent-nodes', second)).status).toBe(201);
  expect(await refusal('POST', '/api/agents', { name: 'a', command: 'true' })).toBe(CHOOSE);
  expect(await plane.cli(['nodes', 'repositories'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(CHOOSE),
  });
  const made = await node!.agent('true');
  expect((await plane.finished(made.id)).status).toBe('completed');
});

test('a plane with running agents of its own does not start like this, and keeps those that have ended', async () => {
  const own = await TestPlane.open({ env: WITH_NODES });
  try {
    const { id } = await own.agent('echo up; sleep 600', { name: 'sleeper' });
    await own.frames(id, (frames) => frames.some(({ data }) => data.data === 'up\n'));
    await own.kill();
    await expect(own.start(REMOTE_ONLY)).rejects.toThrow('agents still run on this machine: sleeper');
    await own.start();
    await own.client.call('stopAgent', { params: { agent_id: id }, body: { grace_seconds: 0 } });
    await own.kill('SIGTERM');

    await own.start(REMOTE_ONLY);
    expect(await own.get(id)).toMatchObject({ node_id: 'main', status: 'cancelled' });
    expect(String(await own.output(id))).toBe('up\n');
    await expect(own.client.call('startAgent', { params: { agent_id: id } })).rejects.toMatchObject({
      code: 'no_local_node',
    });
    await own.client.call('deleteAgent', { params: { agent_id: id } });
  } finally {
    await own.close();
  }
});
