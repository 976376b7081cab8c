/** Targets of the plane's connections: forbidden addresses, servers that redirect, and hostile nodes. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type Server } from 'node:net';
import { WITH_NODES } from '../../src/testing/agent-node.ts';
import { FORBIDDEN_ADDRESSES } from '../../src/testing/bad-requests.ts';
import { withProgram } from '../program.ts';
import { counts, type FaultRow, outcomeOf, Tally } from './row.ts';
import { runTests } from './tests.ts';

const WORDS = [
  'failed to connect to remote node',
  'certificate verify failed',
  'unauthorized',
  'agent node does not answer',
];

export const targets: FaultRow = {
  number: 47,
  fault:
    'a `grpc_target` that is a metadata or link-local address, is not https, or is a server that redirects; a ' +
    'node that sends endlessly',
  expected: 'rejected or bounded; the error is always one of a few fixed messages',
  default_n: 1,
  run: async () => {
    const tally = new Tally();
    await withProgram(async (plane) => {
      const register = (grpc_target: string, id = 'evil') =>
        plane.client.call('registerAgentNode', { body: { id, name: id, grpc_target } });
      const outcomes: string[] = [];
      const forms = FORBIDDEN_ADDRESSES.map(
        (address) => `https://${address.includes(':') ? `[${address}]` : address}:443`,
      );
      const others = [
        ...[
          'http://127.0.0.1:1',
          'https://127.0.0.1',
          'https://127.0.0.1:0',
          'https://127.0.0.1:65536',
          'file:///etc/passwd',
        ],
        ...[
          'https://user@127.0.0.1:1',
          'https://127.0.0.1:1/path',
          'https://127.0.0.1:1?x',
          'https://127.0.0.1:1#x',
          'https://:1',
        ],
        ...[
          'https://2852039166:1',
          'https://0xa9fea9fe:1',
          'https://0251.0376.0251.0376:1',
          'https://169.254.43518:1',
          'https://127.0.0.1:1\r\nHost: x',
        ],
      ];
      for (const target of [...forms, ...others]) {
        const outcome = await outcomeOf(register(target));
        outcomes.push(outcome);
        tally.case(outcome.startsWith('grpc_target'), `${target}: ${outcome}`);
        if (outcome === 'ok') await plane.client.call('deleteAgentNode', { params: { node_id: 'evil' } });
      }
      tally.measure(`${outcomes.length} targets: ${counts(outcomes)}`);
      await checkForeignServers(tally, plane, register);
    }, WITH_NODES);
    await runTests(tally, ['src/link/plane/target.test.ts', 'test/link-hostile.test.ts']);
    return tally.outcome();
  },
};

type Plane = Parameters<Parameters<typeof withProgram>[0]>[0];

/** Servers that are not nodes: the plane follows no redirects, and does not reveal their answers. */
async function checkForeignServers(
  tally: Tally,
  plane: Plane,
  register: (target: string, id: string) => Promise<unknown>,
): Promise<void> {
  let visits = 0;
  const canary = await serve('HTTP/1.1 200 OK\r\n\r\n', () => visits++);
  const away = `http://127.0.0.1:${portOf(canary)}/secret`;
  const redirects = await serve(`HTTP/1.1 302 Found\r\nLocation: ${away}\r\nContent-Length: 0\r\n\r\n`);
  const ssh_server = await serve(`SSH-2.0-secret banner of an inner service\r\n`);
  try {
    for (const [id, server] of Object.entries({ redirects, talks: ssh_server })) {
      await register(`https://127.0.0.1:${portOf(server)}`, id);
      const params = { node_id: id };
      const health = await plane.client.call('getAgentNodeHealth', { params });
      const errors = health.checks.flatMap(({ error }) => error ?? []);
      tally.case(
        errors.length > 0 && errors.every((error) => WORDS.includes(error)),
        `${id}: ${errors.join(', ')}`,
      );
      tally.case(!JSON.stringify(health).includes('secret'), `${id}: the answer of the server is shown`);
      tally.measure(`a server that ${id}: ${health.status}, ${counts(errors)}`);
      await plane.client.call('deleteAgentNode', { params });
    }
    tally.case(visits === 0, `the canary was visited ${visits} times`);
  } finally {
    for (const server of [canary, redirects, ssh_server]) server.close();
  }
}

/** Opens a server that sends the same answer to every client that sends data. */
async function serve(answer: string, onVisit: () => void = () => {}): Promise<Server> {
  const server = createServer((socket) => {
    onVisit();
    socket.on('error', () => {});
    socket.on('data', () => socket.end(answer));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}
