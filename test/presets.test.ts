/** Presets with real programs: detecting them on a plane and on a node, and creating agents from them. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { PresetRecord } from '../src/features/presets/rules/preset.ts';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { requesterOf } from '../src/testing/http.ts';
import { TestPlane } from '../src/testing/plane.ts';

let plane: TestPlane;
let node: TestAgentNode;
/** The first folder on the PATH of both, below the plane's folder. */
let bin: string;

beforeAll(async () => {
  plane = await TestPlane.prepare({ env: WITH_NODES });
  bin = join(plane.folder, 'bin');
  await mkdir(bin);
  await program('codex-acp', 'echo "codex-acp 9.8"');
  const PATH = [bin, dirname(process.execPath), '/usr/bin', '/bin'].join(':');
  await plane.start({ PATH, HOME: plane.folder, OPENAI_API_KEY: 'k' });
  await plane.join();
  node = await TestAgentNode.open(plane, { env: { PATH } });
  await mkdir(join(node.folder, '.codex'));
  await writeFile(join(node.folder, '.codex/auth.json'), '{}');
});
afterAll(async () => {
  await node?.close();
  await plane?.close();
});

function program(name: string, text: string): Promise<void> {
  return writeFile(join(bin, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
}

const request = requesterOf(() => plane);

async function http(path: string, body?: unknown): Promise<[status: number, body: unknown]> {
  const answer = await request(body === undefined ? 'GET' : 'POST', path, body);
  return [answer.status, answer.body];
}

async function preset(id: string, query = ''): Promise<PresetRecord | undefined> {
  const [status, list] = await http(`/api/presets${query}`);
  expect(status).toBe(200);
  return (list as PresetRecord[]).find((one) => one.id === id);
}

test('the plane and a node report which presets are installed and signed in', async () => {
  const found = { installed: true, path: join(bin, 'codex-acp'), version: 'codex-acp 9.8' };
  expect(await preset('codex')).toMatchObject({ ...found, signed_in: 'yes' });
  expect(await preset('codex', `?node_id=${node.id}`)).toMatchObject({ ...found, signed_in: 'yes' });
  for (const query of ['', `?node_id=${node.id}`]) {
    expect(await preset('demo', query)).toMatchObject({ installed: true, signed_in: 'yes' });
  }
});

test('presets are cached until a request asks for a refresh', async () => {
  expect(await preset('droid')).toMatchObject({ installed: false });
  await program('droid', 'echo 0.1');
  expect(await preset('droid')).toMatchObject({ installed: false });
  expect(await preset('droid', '?refresh=true')).toMatchObject({ installed: true, version: '0.1' });
});

test('presets of an unknown node get a 404, and those of an unreachable node a 502', async () => {
  expect(await http('/api/presets?node_id=nowhere')).toEqual([404, { error: 'agent node not found' }]);
  const away = { id: 'away', name: 'away', grpc_target: 'https://127.0.0.1:1' };
  expect((await http('/api/admin/agent-nodes', away))[0]).toBe(201);
  const unreachable = [502, { error: 'failed to connect to remote node' }];
  expect(await http('/api/presets?node_id=away')).toEqual(unreachable);
});

test('an agent created from a preset runs its program with its variables, on the plane and on a node', async () => {
  await program('codex-acp', 'echo "$INITIAL_AGENT_MODE"');
  for (const place of [
    { node_id: 'main', workdir: plane.work },
    { node_id: node.id, workdir: node.work },
  ]) {
    const body = { name: 'codex', preset: 'codex', protocol: 'plain', start: true, ...place };
    const [status, made] = await http('/api/agents', body);
    expect([status, made]).toMatchObject([201, { preset: 'codex', argv: ['codex-acp'] }]);
    const { id } = made as { id: string };
    expect(await plane.finished(id)).toMatchObject({ status: 'completed' });
    expect((await plane.output(id)).toString()).toBe('read-only\n');
  }
});

test('an unknown preset, or one without a command, is refused', async () => {
  const body = { name: 'x', workdir: plane.work };
  const refused = (error: string) => [400, { error }];
  const create = (more: object) => http('/api/agents', { ...body, ...more });
  expect(await create({ preset: 'chess' })).toEqual(refused('unknown preset: chess'));
  expect(await create({ preset: 'plain' })).toEqual(refused('command is required'));
  expect(await create({})).toEqual(refused('command is required'));
});
