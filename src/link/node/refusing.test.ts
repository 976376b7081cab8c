/** Invalid requests from a plane: rejected as such, and not as the node's fault. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, Code, ConnectError, createClient } from '@connectrpc/connect';
import pino from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { openTestNode } from '../../testing/local-node.ts';
import { openTestNodeServer, remoteNode } from '../../testing/remote-node.ts';
import { testTls } from '../../testing/tls.ts';
import { openConnection } from '../plane/connection.ts';
import { NodeService } from '../proto/node_pb.ts';
import { formatPosition, LINK_HEADER } from '../wire.ts';

interface Refusing {
  client: Client<typeof NodeService>;
  headers: Record<string, string>;
  logged: { level: string; message: string }[];
}

/** A node with a link to a plane, and a client that uses that plane's position. */
async function open(): Promise<Refusing> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-refusing-'));
  const node = await openTestNode(folder);
  const logged: Refusing['logged'] = [];
  const log = pino(
    { messageKey: 'message', formatters: { level: (level) => ({ level }) } },
    { write: (line: string) => void logged.push(JSON.parse(line)) },
  );
  const server = await openTestNodeServer(node, { log });
  const position = { plane_id: 'pln_test', incarnation: 7, epoch: 1 };
  const plane = remoteNode(() => server.port, { nextPosition: async () => position });
  const tls = { ca: testTls.cert };
  const connection = await openConnection({
    host: '127.0.0.1',
    port: server.port,
    servername: 'localhost',
    tls,
  });
  onTestFinished(async () => {
    connection.close();
    await plane.detach();
    await server.close();
    await node.close();
    await rm(folder, { recursive: true, force: true });
  });
  await plane.attach({ snapshot: async () => {}, fact: () => {}, wake: () => {} });
  const headers = { [LINK_HEADER]: formatPosition(position) };
  return { client: createClient(NodeService, connection.transport), headers, logged };
}

async function errorOf(call: Promise<unknown>): Promise<ConnectError | null> {
  return call.then(
    () => null,
    (thrown: unknown) => ConnectError.from(thrown),
  );
}

const SESSION = `ses_${'a'.repeat(16)}`;
const faults = ({ logged }: Refusing) => logged.filter(({ level }) => level === 'error');

test('rejects an invalid number as an argument, and logs it as the plane’s fault', async () => {
  const node = await open();
  const asked = node.client.input({ sessionId: SESSION, offset: 2n ** 64n - 1n }, node);
  const error = await errorOf(asked);
  expect(error).toMatchObject({ code: Code.InvalidArgument, rawMessage: 'a number out of range' });
  expect(faults(node)).toEqual([]);
  const warning = { level: 'warn', message: 'plane breaks the protocol' };
  expect(node.logged).toContainEqual(expect.objectContaining(warning));
});

test.each([
  ['a session whose id leads elsewhere', { sessionId: '..', argv: ['true'] }, 'session_id is not valid'],
  ['a session without an id', { sessionId: '', argv: ['true'] }, 'session_id is not valid'],
  ['no command', { sessionId: SESSION, argv: [] }, 'argv must not be empty'],
  ['a command with NUL', { sessionId: SESSION, argv: ['a\0b'] }, 'argv and env must not contain NUL'],
  [
    'an environment with NUL',
    { sessionId: SESSION, argv: ['true'], env: { A: 'a\0b' } },
    'argv and env must not contain NUL',
  ],
])('does not start %s, without an unexpected error', async (_name, launch, words) => {
  const node = await open();
  const error = await errorOf(node.client.start({ workdir: '/', ...launch }, node));
  expect(error).toMatchObject({ code: Code.FailedPrecondition, rawMessage: words });
  expect(faults(node)).toEqual([]);
});
