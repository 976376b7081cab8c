/**
 * Calls every method of every service on the listener of a real node, in `mtls` and in `tls`: as the plane, as another node,
 * as an agent of the machine, as a stranger, and as callers that know a secret but have no certificate.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DescMethod, DescMethodStreaming, DescMethodUnary, DescService } from '@bufbuild/protobuf';
import { Code, ConnectError, type Transport } from '@connectrpc/connect';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../src/base/clock.ts';
import { silentLog } from '../src/base/log.ts';
import { type Connection, openConnection } from '../src/link/plane/connection.ts';
import { ActorService } from '../src/link/proto/actor_pb.ts';
import { JoinService, NodeService, RefusalSchema } from '../src/link/proto/node_pb.ts';
import { type Identity, JOIN_NAME, makeCa, makeCsr, makeKey, makeLeaf } from '../src/link/trust/pki.ts';
import { PlaneTrust } from '../src/link/trust/plane-trust.ts';
import { mintToken, type TokenSettings } from '../src/link/trust/tokens.ts';
import { TIME_HEADER } from '../src/link/wire.ts';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { firstOf } from '../src/testing/long.ts';
import { TestPlane } from '../src/testing/plane.ts';

const settings: TokenSettings = {
  shared_secret: 'a shared secret of more than 32 bytes',
  issuer: 'svc',
  audience: 'svc-internal',
};
const services: DescService[] = [NodeService, JoinService, ActorService];

let plane: TestPlane;
let node: TestAgentNode;
let trust: PlaneTrust;
/** The variables of the node, with the token that it joined with. */
let bootstrap: Record<string, string>;
let own: Identity;
let other_node: Identity;
let stranger: Identity;
let session_token: string;

beforeAll(async () => {
  plane = await TestPlane.open({
    env: { ...WITH_NODES, SVC_INTERNAL_GRPC_AUTH_SHARED_SECRET: settings.shared_secret },
  });
  node = await TestAgentNode.prepare(plane);
  bootstrap = await node.token();
  await node.start(bootstrap);
  await node.register();
  await node.linked();
  const agent = await node.agent('exec sleep 1000');
  session_token = (await readFile(join(node.data_dir, 'actor', `${agent.session_id}.token`), 'utf8')).trim();
  trust = await PlaneTrust.open({
    cert_dir: join(plane.data_dir, 'internal-grpc'),
    plane_id: /"plane_id":"(pln_\w+)"/.exec(node.log)![1]!,
    mode: 'tls',
    ...settings,
    clock: systemClock,
    log: silentLog,
  });
  own = trust.identity()!;
  const key = await makeKey();
  const cert = await trust.issue(await makeCsr(key, 'svc node n2'), 'n2', ['127.0.0.1']);
  other_node = { ca: own.ca, cert, key };
  const authority = await makeKey();
  const leaf_key = await makeKey();
  const foreign = await makeLeaf({ key: authority, cert: await makeCa(authority, Date.now()) }, leaf_key, {
    title: 'svc plane pln_x',
    uri: 'svc:plane:pln_x',
    names: ['127.0.0.1'],
    usages: ['client', 'server'],
    now_ms: Date.now(),
    lifetime_ms: 3_600_000,
  });
  stranger = { ca: own.ca, cert: foreign, key: leaf_key };
}, 60_000);
afterAll(async () => {
  trust?.close();
  await node?.close();
  await plane?.close();
});

// --- callers and their access -----------------------------------------------------------------------------------------

type Tokens = 'none' | 'link' | 'other_secret' | 'actor' | 'session' | 'api';
interface Peer {
  name: string;
  identity: () => { ca: string; cert?: string; key?: string };
  servername?: string;
  token: Tokens;
  /** The services that accept the peer, by the mode of the node. */
  opens: { mtls: DescService[]; tls: DescService[] };
}

const bare = () => ({ ca: own.ca });
const none = { mtls: [], tls: [] };
const actors = { mtls: [ActorService], tls: [ActorService] };

const peers: Peer[] = [
  {
    ...{ name: 'the plane', identity: () => own, token: 'link' },
    opens: { mtls: [NodeService, ActorService], tls: [NodeService, ActorService] },
  },
  {
    // In `tls`, a plane proves itself with its token. The node accepts every actor, because the plane authorizes actors.
    ...{ name: 'the plane without a token', identity: () => own, token: 'none' },
    opens: { mtls: [NodeService, ActorService], tls: [ActorService] },
  },
  { name: 'the plane with a bad token', identity: () => own, token: 'other_secret', opens: actors },
  { name: 'another node', identity: () => other_node, token: 'none', opens: none },
  { name: 'another node that knows the secret', identity: () => other_node, token: 'link', opens: none },
  // An untrusted certificate counts as none in `tls`, and is refused in `mtls`.
  {
    ...{ name: 'another plane', identity: () => stranger, token: 'other_secret' },
    opens: { mtls: [], tls: [ActorService] },
  },
  { name: 'an agent of the machine', identity: bare, token: 'session', opens: actors },
  { name: 'a caller without a token', identity: bare, token: 'none', opens: actors },
  { name: 'root, with a sign-in token', identity: bare, token: 'api', opens: actors },
  { name: 'a caller that makes actor tokens', identity: bare, token: 'actor', opens: actors },
  {
    // docs/how-to/nodes.md: in `tls`, anyone who knows the secret can act as the plane.
    ...{ name: 'a caller that makes link tokens', identity: bare, token: 'link' },
    opens: { mtls: [ActorService], tls: [NodeService, ActorService] },
  },
  // The bootstrap token of this node has been used.
  { name: 'a caller that wants to join', identity: bare, servername: JOIN_NAME, token: 'link', opens: none },
  {
    name: 'the plane, with the server name for joins',
    identity: () => own,
    servername: JOIN_NAME,
    token: 'link',
    opens: none,
  },
];

async function tokenOf(kind: Tokens): Promise<string | null> {
  switch (kind) {
    case 'none':
      return null;
    case 'link':
      return mintToken(settings, trust.plane_id, systemClock);
    case 'other_secret':
      return mintToken({ ...settings, shared_secret: 'x'.repeat(40) }, trust.plane_id, systemClock);
    case 'actor':
      return mintToken(settings, 'user:ana', systemClock, { kind: 'actor' });
    case 'session':
      return session_token;
    case 'api':
      return plane.token;
  }
}

async function dial({ identity, servername = '127.0.0.1', token }: Peer): Promise<Connection | null> {
  try {
    return await openConnection({
      host: '127.0.0.1',
      port: node.port,
      servername,
      tls: identity(),
      // This test does not check the identity of the node.
      verify: () => undefined,
      token: () => tokenOf(token),
    });
  } catch {
    return null;
  }
}

/** Whether the node accepts the caller, whatever the result of the call. Its own refusal has no detail. */
async function isAccepted(transport: Transport, method: DescMethod): Promise<boolean> {
  try {
    await callEmpty(transport, method);
    return true;
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    // Only responses of the node have the time header; an error of a cut connection does not.
    const answered = error.metadata.has(TIME_HEADER);
    const refused = error.code === Code.Unauthenticated && error.findDetails(RefusalSchema).length === 0;
    return answered && !refused;
  }
}

async function callEmpty(transport: Transport, method: DescMethod): Promise<void> {
  if (method.methodKind === 'unary') {
    await transport.unary(method as DescMethodUnary, undefined, 5_000, undefined, {});
    return;
  }
  const requests = (async function* () {
    yield {};
  })();
  const { message } = await transport.stream(
    method as DescMethodStreaming,
    undefined,
    5_000,
    undefined,
    requests,
  );
  for await (const _ of message) return;
}

test.each(firstOf(1, ['mtls', 'tls'] as const))(
  'in %s, every method accepts only its intended callers',
  async (mode) => {
    await node.kill('SIGTERM');
    await node.start({ ...bootstrap, SVC_INTERNAL_GRPC_SECURITY_MODE: mode });
    await node.linked();
    const wrong: unknown[] = [];
    let cells = 0;
    for (const peer of peers) {
      for (const service of services) {
        for (const method of service.methods) {
          // Every call uses a new connection, because the node closes it at the first unauthorized request.
          const connection = await dial(peer);
          const accepted = connection !== null && (await isAccepted(connection.transport, method));
          connection?.close();
          cells++;
          if (accepted !== peer.opens[mode].includes(service))
            wrong.push([`${service.name}.${method.name} by ${peer.name}`, { accepted }]);
        }
      }
    }
    expect(wrong).toEqual([]);
    expect(cells).toBe(peers.length * services.flatMap(({ methods }) => methods).length);
    expect((await node.record()).status).toBe('connected');
  },
);
