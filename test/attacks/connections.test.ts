/** Programs of the same machine, such as a sandboxed agent, that open as many connections as they can, without a token. */
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../../src/client/client.ts';
import { TestAgentNode, WITH_NODES } from '../../src/testing/agent-node.ts';
import { AgentShell, SHELL } from '../../src/testing/agent-shell.ts';
import { ROOT, SVC, TestPlane } from '../../src/testing/plane.ts';

/** Descriptors that the service can have. */
const DESCRIPTORS = 600;

let folder: string;
let plane: TestPlane;
let node: TestAgentNode;
const closers: (() => void)[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-connections-'));
  const program = join(folder, 'svc');
  await writeFile(program, `#!/bin/sh\nulimit -n ${DESCRIPTORS}\nexec '${SVC}' "$@"\n`);
  await chmod(program, 0o755);
  plane = await TestPlane.open({ env: WITH_NODES, program });
  node = await TestAgentNode.open(plane);
});
afterAll(async () => {
  for (const close of closers) close();
  await node?.close();
  await plane?.close();
  await rm(folder, { recursive: true, force: true });
});

/** Opens a connection that sends one request and stays open. */
async function openConnection(): Promise<void> {
  const { hostname, port, host } = new URL(plane.url);
  const socket = connect(Number(port), hostname).on('error', () => {});
  closers.push(() => socket.destroy());
  await once(socket, 'connect');
  socket.resume().write(`GET /healthz HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
}

test.runIf(process.platform === 'linux')(
  'connections without a token leave descriptors for the service, and places for people',
  async () => {
    const running = await plane.agent('exec sleep 1000');
    for (let i = 0; i < 20; i++) {
      await Promise.all(Array.from({ length: 100 }, openConnection));
      if (i % 5 === 4)
        expect((await new Client({ url: plane.url }).call('login', { body: ROOT })).user).toBeTruthy();
    }
    expect(readdirSync(`/proc/${plane.pid}/fd`).length).toBeLessThan(DESCRIPTORS / 2);
    const params = { agent_id: running.id };
    await plane.client.call('stopAgent', { params });
    await expect.poll(async () => (await plane.client.call('getAgent', { params })).status).toBe('cancelled');
    expect(plane.log).not.toContain('EMFILE');
  },
);

/** An HTTP/2 connection that makes no call, and sends pings so that it stays open. */
async function openPinging(url: string): Promise<void> {
  const session = connectHttp2(url, { rejectUnauthorized: false }).on('error', () => {});
  const pings = setInterval(() => session.destroyed || session.closed || session.ping(() => {}), 500);
  closers.push(() => {
    clearInterval(pings);
    session.destroy();
  });
  await new Promise((resolve) => session.once('connect', resolve).once('close', resolve));
}

test('idle connections to the listeners for agents keep no other agent out, nor the control plane', async () => {
  for (const where of [plane, node]) {
    const workdir = join(where.work, 'shell');
    await mkdir(workdir);
    await where.agent(SHELL, { workdir });
    const shell = new AgentShell(workdir);
    const { output: endpoint } = await shell.run('echo "$SVC_ACTOR_ENDPOINT"');
    for (let i = 0; i < 4; i++)
      await Promise.all(Array.from({ length: 50 }, () => openPinging(endpoint.trim())));
    const { output, exit_code } = await shell.run('svc actor whoami');
    expect(exit_code, output).toBe(0);
  }
  // The control plane still reaches its node.
  await node.agent('true');
});
