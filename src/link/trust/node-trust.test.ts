import { readFile, rm, writeFile } from 'node:fs/promises';
import { connect as connectHttp2, constants as http2 } from 'node:http2';
import { join } from 'node:path';
import tls from 'node:tls';
import { createClient } from '@connectrpc/connect';
import { UnsecuredJWT } from 'jose';
import pino from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { limits } from '../../base/limits.ts';
import {
  BOOTSTRAP,
  dial,
  joinTo,
  leafOf,
  openTrustedNode,
  outcome,
  SECRET,
  TestClock,
  type TrustedNode,
  testFolder,
  testPlaneTrust,
} from '../../testing/trusted-node.ts';
import { type Connection, openConnection } from '../plane/connection.ts';
import { ActorService } from '../proto/actor_pb.ts';
import { JoinService } from '../proto/node_pb.ts';
import { toProblem } from '../wire.ts';
import { NodeTrust } from './node-trust.ts';
import { type Identity, type KeyPair, type LeafContent, makeCa, makeKey } from './pki.ts';
import { type PlaneTrust, verifyNode } from './plane-trust.ts';
import { mintToken, type TokenSettings } from './tokens.ts';

const HOUR_MS = 60 * 60 * 1000;
const settings: TokenSettings = { shared_secret: SECRET, issuer: 'svc', audience: 'svc-internal' };

/** An operator's own authority. */
async function ownAuthority(): Promise<KeyPair> {
  const key = await makeKey();
  return { key, cert: await makeCa(key, Date.now()) };
}

async function put(cert_dir: string, { ca, cert, key }: Partial<Identity>): Promise<void> {
  if (ca) await writeFile(join(cert_dir, 'ca.pem'), ca);
  if (cert) await writeFile(join(cert_dir, 'cert.pem'), cert);
  if (key) await writeFile(join(cert_dir, 'key.pem'), key);
}

/** A node with certificates of its operator, and the authority that made them. */
async function operatorsNode(
  more: Parameters<typeof openTrustedNode>[0] = {},
  content: Partial<LeafContent> = {},
): Promise<TrustedNode & { ca: KeyPair }> {
  const ca = await ownAuthority();
  const cert_dir = await testFolder();
  await put(cert_dir, await leafOf(ca, content));
  return { ...(await openTrustedNode({ cert_dir, shared_secret: SECRET, ...more })), ca };
}

/** A node that has joined, and its plane. */
async function joined(
  more: Parameters<typeof openTrustedNode>[0] = {},
): Promise<TrustedNode & { plane: PlaneTrust }> {
  const node = await openTrustedNode(more);
  const plane = await testPlaneTrust();
  await joinTo(node, plane);
  return { ...node, plane };
}

const token = (changed: Partial<TokenSettings> = {}, clock = new TestClock()) =>
  mintToken({ ...settings, ...changed }, 'pln_test', clock);

function clockAt(offset_ms: number): TestClock {
  const clock = new TestClock();
  clock.now_ms += offset_ms;
  return clock;
}

// --- tls -------------------------------------------------------------------------------------------------------------

test('in mode tls a token is sufficient and required; all errors look alike, and the log has the reason', async () => {
  const node = await operatorsNode({ mode: 'tls' });
  const connection = await dial(node, { ca: node.ca.cert });
  const good = await token();
  expect(await outcome(connection, good)).toBe('ok');
  const refusals: [string | null, RegExp][] = [
    [null, /no token/],
    ['a b', /no bearer token/],
    ['a.b.c', /./],
    [good, /used before/],
    [await token({ shared_secret: `${SECRET}!` }), /signature/],
    [await token({ issuer: 'other' }), /"iss"/],
    [await token({ audience: 'other' }), /"aud"/],
    [await token({}, clockAt(-HOUR_MS)), /timestamp/],
    [await token({}, clockAt(HOUR_MS)), /timestamp/],
    [new UnsecuredJWT({ sub: 'pln_test' }).encode(), /./],
  ];
  for (const [bad, reason] of refusals) {
    expect(await outcome(connection, bad)).toBe('unauthorized');
    expect(node.reasons.at(-1)).toMatch(reason);
  }
  expect(node.reasons).toHaveLength(refusals.length);
  expect(await outcome(connection, await token())).toBe('ok');
});

test('in mode tls without a secret, every call is rejected', async () => {
  const node = await operatorsNode({ mode: 'tls', shared_secret: null });
  const connection = await dial(node, { ca: node.ca.cert });
  expect(await outcome(connection, await token())).toBe('unauthorized');
  expect(node.reasons).toEqual(['no shared secret is known here']);
});

test('in mode tls an unknown certificate does not matter, but another node’s is rejected', async () => {
  const node = await joined({ mode: 'tls' });
  const { ca } = node.plane.identity()!;
  const stranger = await leafOf(await ownAuthority());
  expect(await outcome(await dial(node, { ...stranger, ca }), await node.plane.token())).toBe('ok');

  const other = await certifiedNode(node.plane, 'web-2');
  const connection = await dial(node, other);
  expect(await outcome(connection, await node.plane.token())).toBe('failed to connect to remote node');
  expect(node.reasons).toEqual(['the peer’s certificate is not a plane’s']);
});

// --- mtls ------------------------------------------------------------------------------------------------------------

async function certifiedNode(plane: PlaneTrust, node_id: string): Promise<Identity> {
  const other = await openTrustedNode({ node_id });
  await joinTo(other, plane, { node_id });
  const read = (file: string) => readFile(join(other.options.cert_dir, file), 'utf8');
  return { ca: await read('ca.pem'), cert: await read('cert.pem'), key: await read('key.pem') };
}

test('in mtls the certificate is sufficient, but a given token must be valid', async () => {
  const node = await joined();
  const connection = await dial(node, node.plane.identity()!);
  expect(await outcome(connection, null)).toBe('ok');
  expect(await outcome(connection, await node.plane.token())).toBe('ok');
  expect(await outcome(connection, await token())).toBe('unauthorized');
});

test('in mtls with the operator’s certificates no secret is needed, and tokens are ignored', async () => {
  const node = await operatorsNode({ mode: 'mtls', shared_secret: null });
  const connection = await dial(node, await leafOf(node.ca));
  expect(await outcome(connection, await token())).toBe('ok');
});

test('in mtls only a currently valid certificate of a plane from the authority is accepted', async () => {
  const cert_dir = await testFolder();
  const plane = await testPlaneTrust({ cert_dir });
  const node = await openTrustedNode();
  await joinTo(node, plane);
  const { ca } = plane.identity()!;
  const authority: KeyPair = { cert: ca, key: await readFile(join(cert_dir, 'ca-key.pem'), 'utf8') };
  const uri = 'svc:plane:pln_test';
  const strangers: [Partial<Identity>, RegExp][] = [
    [{}, /no certificate/],
    [await leafOf(await ownAuthority(), { uri }), /is invalid/],
    [await leafOf(authority, { uri, now_ms: Date.now() - 3 * HOUR_MS }), /is invalid: CERT_HAS_EXPIRED/],
    [await leafOf(authority, { uri, now_ms: Date.now() + 48 * HOUR_MS }), /is invalid: CERT_NOT_YET_VALID/],
    [await leafOf(authority, { uri, usages: ['server'] }), /is invalid/],
    [await certifiedNode(plane, 'web-2'), /not a plane’s/],
    [await leafOf(authority, { uri: 'svc:join:plane' }), /not a plane’s/],
  ];
  for (const [{ cert, key }, reason] of strangers) {
    const connection = await dial(node, { ca, ...(cert && key && { cert, key }) });
    expect(await outcome(connection, await plane.token())).toBe('failed to connect to remote node');
    expect(node.reasons.at(-1)).toMatch(reason);
  }
  expect(await outcome(await dial(node, await leafOf(authority, { uri })), null)).toBe('ok');
});

// --- nodes that the plane rejects ------------------------------------------------------------------------------------

test('the plane rejects a node with a wrong name, an expired certificate, or another authority', async () => {
  const node = await operatorsNode({ mode: 'tls' });
  const { cert: ca } = node.ca;
  const refused = async (connecting: Promise<unknown>) =>
    expect(connecting).rejects.toMatchObject({ code: 'certificate_verify_failed' });
  await dial(node, { ca }, { servername: 'web-1.example' });
  await refused(dial(node, { ca }, { servername: 'web-2.example' }));
  await refused(dial(node, { ca }, { servername: '127.0.0.2' }));
  await refused(dial(node, { ca: (await ownAuthority()).cert }));
  const expired = await operatorsNode({ mode: 'tls' }, { now_ms: Date.now() - 3 * HOUR_MS });
  await refused(dial(expired, { ca: expired.ca.cert }));
  const clients = await operatorsNode({ mode: 'tls' }, { usages: ['client'] });
  await refused(dial(clients, { ca: clients.ca.cert }));
});

test('the plane rejects another node at the target, even if its name is right', async () => {
  const plane = await testPlaneTrust();
  const node = await openTrustedNode({ node_id: 'web-2' });
  await joinTo(node, plane, { node_id: 'web-2' });
  await expect(dial(node, plane.identity()!)).rejects.toMatchObject({
    code: 'node_id_mismatch',
    message: 'node id mismatch: registered web-1, node says web-2',
  });
});

test('a joined node is recognized by its identity at any address; a configured TLS name must match', async () => {
  const { plane, port } = await joined();
  const identity = plane.identity()!;
  const moved = { servername: 'moved.example' };
  await dial({ port }, identity, { ...moved, verify: verifyNode('web-1', null) });
  const asked = dial({ port }, identity, { ...moved, verify: verifyNode('web-1', 'moved.example') });
  await expect(asked).rejects.toMatchObject({ code: 'certificate_verify_failed' });
  const other = dial({ port }, identity, { ...moved, verify: verifyNode('web-2', null) });
  await expect(other).rejects.toMatchObject({ code: 'node_id_mismatch' });

  const own = await operatorsNode({ mode: 'tls' });
  const unnamed = dial(own, { ca: own.ca.cert }, { ...moved, verify: verifyNode('web-1', null) });
  await expect(unnamed).rejects.toMatchObject({ code: 'certificate_verify_failed' });
  const plane_like = await operatorsNode({ mode: 'tls' }, { uri: 'svc:plane:pln_test' });
  const posing = dial(plane_like, { ca: plane_like.ca.cert }, { verify: verifyNode('web-1', null) });
  await expect(posing).rejects.toMatchObject({ code: 'certificate_verify_failed' });
});

// --- agents of the same machine --------------------------------------------------------------------------------------

async function actorCall({ transport }: Connection): Promise<string> {
  try {
    return (await createClient(ActorService, transport).call({})).result;
  } catch (error) {
    return toProblem(error).message;
  }
}

test('agents of the machine, without a certificate, can call the actor service and no other', async () => {
  const node = await joined({ actors: true });
  const { ca, cert, key } = node.plane.identity()!;
  const agent = await dial(node, { ca });
  expect(await actorCall(agent)).toBe('"ok"');
  expect(await outcome(agent, null)).toBe('unauthorized');
  expect(await outcome(agent, await node.plane.token())).toBe('unauthorized');
  const begin = createClient(JoinService, agent.transport).beginJoin({});
  await expect(begin).rejects.toThrow('unauthorized');

  // If a peer presents a certificate, only the certificate counts.
  const stranger = await leafOf(await ownAuthority());
  expect(await actorCall(await dial(node, { ...stranger, ca }))).toBe('failed to connect to remote node');
  expect(await actorCall(await dial(node, { ca, cert, key }))).toBe('"ok"');
});

test('without an actor service, a peer without a certificate is rejected', async () => {
  const node = await joined();
  const agent = await dial(node, { ca: node.plane.identity()!.ca });
  expect(await actorCall(agent)).toBe('failed to connect to remote node');
});

// --- sockets ---------------------------------------------------------------------------------------------------------

test('a TLS session is never resumed, because it would have no certificate', async () => {
  const node = await joined({ mode: 'tls' });
  const { ca, cert, key } = node.plane.identity()!;
  const options = { host: '127.0.0.1', port: node.port, ca, cert, key, ALPNProtocols: ['h2'] };
  const first = tls.connect(options);
  onTestFinished(() => void first.destroy());
  const session = await new Promise<Buffer>((resolve) => first.once('session', resolve));
  const second = tls.connect({ ...options, session });
  onTestFinished(() => void second.destroy());
  await new Promise((resolve) => second.once('secureConnect', resolve));
  expect(second.isSessionReused()).toBe(false);
});

test('rejects older TLS', async () => {
  const node = await openTrustedNode();
  const socket = tls.connect({ host: '127.0.0.1', port: node.port, maxVersion: 'TLSv1.2' });
  const error = await new Promise<NodeJS.ErrnoException>((resolve) => socket.once('error', resolve));
  expect(error.code).toMatch(/PROTOCOL_VERSION/);
});

test('an unauthorized peer is rejected and disconnected before any call', async () => {
  const node = await openTrustedNode();
  // An unknown client that does not verify the node.
  const stranger = connectHttp2(`https://127.0.0.1:${node.port}`, { rejectUnauthorized: false });
  stranger.on('error', () => {});
  const code = new Promise((resolve) => stranger.once('goaway', resolve));
  await new Promise((resolve) => stranger.once('close', resolve));
  expect(await code).toBe(http2.NGHTTP2_INADEQUATE_SECURITY);
  expect(node.reasons).toEqual(['the peer showed no certificate']);
});

test('a node that has not joined trusts no authority, not even public ones', async () => {
  const { trust } = await openTrustedNode();
  const { ca, cert } = trust.tlsOptions();
  expect(ca).toBe(cert);
});

test('in mode disabled there is no TLS, no join, and a token is needed', async () => {
  const node = await openTrustedNode({ mode: 'disabled', shared_secret: SECRET });
  const connection = await openConnection({
    host: '127.0.0.1',
    port: node.port,
    servername: '127.0.0.1',
    tls: null,
  });
  onTestFinished(() => connection.close());
  expect(node.trust.joinable).toBe(false);
  expect(await outcome(connection, await token())).toBe('ok');
  expect(await outcome(connection, null)).toBe('unauthorized');
  const begin = createClient(JoinService, connection.transport).beginJoin({});
  await expect(begin).rejects.toThrow('unauthorized');
});

test('rejected peers cannot fill the log', async () => {
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const node = await operatorsNode({ mode: 'tls', log });
  const connection = await dial(node, { ca: node.ca.cert });
  for (let i = 0; i < 20; i++) expect(await outcome(connection, `guess.of.${i}`)).toBe('unauthorized');
  expect(lines.filter((line) => line.includes('a peer was rejected'))).toHaveLength(1);
});

// --- files -----------------------------------------------------------------------------------------------------------

test('changed certificates of the operator take effect without a restart, for every name', async () => {
  const node = await operatorsNode({ mode: 'tls' });
  await dial(node, { ca: node.ca.cert });
  const ca = await ownAuthority();
  await put(node.options.cert_dir, await leafOf(ca));
  await node.trust.refresh();
  await expect(dial(node, { ca: node.ca.cert })).rejects.toThrow('certificate verify failed');
  expect(await outcome(await dial(node, { ca: ca.cert }), await token())).toBe('ok');
  const byName = await dial(node, { ca: ca.cert }, { servername: 'web-1.example' });
  expect(await outcome(byName, await token())).toBe('ok');
});

test('files are checked periodically', async () => {
  const node = await operatorsNode({ mode: 'tls' });
  const ca = await ownAuthority();
  await put(node.options.cert_dir, await leafOf(ca));
  await vi.waitFor(() => dial(node, { ca: ca.cert }), { timeout: 20_000, interval: 200 });
});

test('invalid certificates are ignored, and the old ones stay in use', async () => {
  const node = await operatorsNode({ mode: 'tls' });
  const next = await leafOf(await ownAuthority());
  for (const half of [{ cert: next.cert }, { cert: 'x' }, { key: 'x' }, { cert: '', key: '' }]) {
    await put(node.options.cert_dir, half);
    await writeFile(join(node.options.cert_dir, 'joined.json'), 'x');
    await node.trust.refresh();
    expect(await outcome(await dial(node, { ca: node.ca.cert }), await token())).toBe('ok');
    await expect(NodeTrust.open(node.options)).rejects.toThrow();
  }
  await rm(join(node.options.cert_dir, 'joined.json'));
  await put(node.options.cert_dir, next);
  await node.trust.refresh();
  expect(await outcome(await dial(node, { ca: next.ca }), await token())).toBe('ok');
});

test('a changed secret file takes effect', async () => {
  const node = await operatorsNode({ mode: 'tls', shared_secret: null });
  const connection = await dial(node, { ca: node.ca.cert });
  expect(await outcome(connection, await token())).toBe('unauthorized');
  await writeFile(join(node.options.cert_dir, 'auth_secret.txt'), `${SECRET}\n`);
  await writeFile(join(node.options.cert_dir, 'auth.json'), '{"issuer":"other"}');
  await node.trust.refresh();
  expect(await outcome(connection, await token())).toBe('unauthorized');
  expect(await outcome(connection, await token({ issuer: 'other' }))).toBe('ok');
});

test('a secret in the earlier format works, and is rewritten', async () => {
  const node = await operatorsNode({ mode: 'tls', shared_secret: null });
  const { cert_dir } = node.options;
  const file = (name: string) => readFile(join(cert_dir, name), 'utf8');
  await writeFile(join(cert_dir, 'auth_secret.txt'), `{"shared_secret":"${SECRET}","issuer":"other"}\n`);
  const again = await openTrustedNode(node.options);
  expect([await file('auth_secret.txt'), await file('auth.json')]).toEqual([
    `${SECRET}\n`,
    '{"issuer":"other"}\n',
  ]);
  const connection = await dial(again, { ca: node.ca.cert });
  expect(await outcome(connection, await token())).toBe('unauthorized');
  expect(await outcome(connection, await token({ issuer: 'other' }))).toBe('ok');

  // The file that a join left beside a configured secret contains no secret.
  await writeFile(join(cert_dir, 'auth_secret.txt'), '{"audience":"svc-internal"}\n');
  await openTrustedNode({ ...node.options, shared_secret: SECRET });
  expect(await file('auth.json')).toBe('{"audience":"svc-internal"}\n');
  await expect(file('auth_secret.txt')).rejects.toThrow('ENOENT');
});

test('certificates of the operator that replace those of a join end the join', async () => {
  const node = await joined();
  const ca = await ownAuthority();
  await put(node.options.cert_dir, await leafOf(ca));
  const again = await openTrustedNode({
    ...node.options,
    bootstrap_token: `${BOOTSTRAP} of tomorrow`,
    mode: 'mtls',
  });
  expect(again.trust.state).toBe('operator');
  expect(again.trust.joinable).toBe(false);
  expect(await outcome(await dial(again, await leafOf(ca)), null)).toBe('ok');
});

test('a start with an unusable configuration is rejected with a message', async () => {
  const open = async (more: Parameters<typeof openTrustedNode>[0], files: Partial<Identity> = {}) => {
    const cert_dir = await testFolder();
    await put(cert_dir, files);
    return openTrustedNode({ cert_dir, ...more });
  };
  await expect(open({ bootstrap_token: 'x'.repeat(15) })).rejects.toThrow(
    `internal_grpc.bootstrap.token must have at least ${limits.bootstrap_token_chars_min} characters`,
  );
  await expect(open({ shared_secret: 'x'.repeat(31) })).rejects.toThrow(
    'internal_grpc.auth.shared_secret must have at least 32 bytes',
  );
  const { cert, key } = await leafOf(await ownAuthority());
  await expect(open({}, { cert })).rejects.toThrow('cert_dir has cert.pem, but no key.pem');
  await expect(open({ mode: 'mtls' }, { cert, key })).rejects.toThrow('needs ca.pem');
});
