import { once } from 'node:events';
import { mkdir, readdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import tls from 'node:tls';
import { createClient } from '@connectrpc/connect';
import { expect, onTestFinished, test } from 'vitest';
import {
  BOOTSTRAP,
  dial,
  joinTo,
  leafOf,
  openTrustedNode,
  outcome,
  SECRET,
  testFolder,
  testPlaneTrust,
} from '../../testing/trusted-node.ts';
import { JoinService } from '../proto/node_pb.ts';
import { toProblem, versionInfo } from '../wire.ts';
import { renewNode } from './join.ts';
import { NodeTrust } from './node-trust.ts';
import { JOIN_NAME, joinCa, type KeyPair, makeCa, makeJoinLeaf, makeKey } from './pki.ts';

const OTHER_TOKEN = 'another bootstrap token for tests';

test('a joined node is reachable at once by address and by name, over the same listener', async () => {
  const node = await openTrustedNode();
  const plane = await testPlaneTrust();
  expect(node.trust.state).toBe('alone');
  await expect(dial(node, plane.identity()!)).rejects.toThrow('certificate verify failed');

  await joinTo(node, plane);
  expect(node.trust.state).toBe('joined');
  expect(node.trust.mode).toBe('mtls');
  expect(node.trust.plane_id).toBe('pln_test');
  const byAddress = await dial(node, plane.identity()!);
  expect(await outcome(byAddress, await plane.token())).toBe('ok');
  const byName = await dial(node, plane.identity()!, { servername: 'web-1.example' });
  expect(await outcome(byName, await plane.token())).toBe('ok');
});

test('the result of a join survives a restart of the node, unreadable for other users', async () => {
  const node = await openTrustedNode();
  const plane = await testPlaneTrust();
  await joinTo(node, plane);
  const { cert_dir } = node.options;
  for (const file of await readdir(cert_dir)) expect((await stat(join(cert_dir, file))).mode & 0o077).toBe(0);

  const again = await openTrustedNode({ ...node.options, bootstrap_token: null });
  expect(again.trust.state).toBe('joined');
  expect(await outcome(await dial(again, plane.identity()!), await plane.token())).toBe('ok');
});

test('a wrong bootstrap token is unauthorized, and the right one still works', async () => {
  const node = await openTrustedNode();
  const plane = await testPlaneTrust();
  const wrong = joinTo(node, plane, { bootstrap_token: OTHER_TOKEN });
  await expect(wrong).rejects.toMatchObject({ code: 'unauthorized', kind: 'bad_gateway' });
  await joinTo(node, plane);
});

test('a node without a bootstrap token accepts no join', async () => {
  const node = await openTrustedNode({ bootstrap_token: null });
  await expect(joinTo(node, await testPlaneTrust())).rejects.toMatchObject({ code: 'unauthorized' });
});

test('a bootstrap token works once, even after a restart; a new one allows a new join', async () => {
  const node = await openTrustedNode();
  await joinTo(node, await testPlaneTrust());
  const other = await testPlaneTrust({ plane_id: 'pln_other' });
  await expect(joinTo(node, other)).rejects.toMatchObject({ code: 'unauthorized' });
  const again = await openTrustedNode(node.options);
  await expect(joinTo(again, other)).rejects.toMatchObject({ code: 'unauthorized' });

  const renewed = await openTrustedNode({ ...node.options, bootstrap_token: OTHER_TOKEN });
  await joinTo(renewed, other, { bootstrap_token: OTHER_TOKEN });
  expect(renewed.trust.plane_id).toBe('pln_other');
  expect(await outcome(await dial(renewed, other.identity()!), await other.token())).toBe('ok');
});

test('a join that cannot be recorded leaves its token valid, and is repeated', async () => {
  const recorded: string[] = [];
  let error: Error | null = new Error('no space left');
  const node = await openTrustedNode({
    onJoin: async (plane_id) => {
      if (error) throw error;
      recorded.push(plane_id);
    },
  });
  const plane = await testPlaneTrust();
  await expect(joinTo(node, plane)).rejects.toThrow();
  expect(node.trust.joinable).toBe(true);
  error = null;
  await joinTo(node, plane);
  expect(recorded).toEqual(['pln_test']);
  expect(node.trust.joinable).toBe(false);
});

test('only one of two concurrent joins succeeds', async () => {
  const node = await openTrustedNode();
  const planes = [await testPlaneTrust(), await testPlaneTrust({ plane_id: 'pln_other' })];
  const ends = await Promise.allSettled(planes.map((plane) => joinTo(node, plane)));
  expect(ends.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  const winner = planes[ends.findIndex(({ status }) => status === 'fulfilled')]!;
  expect(await outcome(await dial(node, winner.identity()!), await winner.token())).toBe('ok');
});

test('a node with another id is rejected with both ids, and its token stays valid', async () => {
  const node = await openTrustedNode({ node_id: 'web-2' });
  const plane = await testPlaneTrust();
  await expect(joinTo(node, plane)).rejects.toMatchObject({
    code: 'node_id_mismatch',
    message: 'node id mismatch: registered web-1, node says web-2',
  });
  expect(node.trust.joinable).toBe(true);
  await joinTo(node, plane, { node_id: 'web-2' });
});

test('a token that another node has just used certifies no node, and the node can still join', async () => {
  const node = await openTrustedNode();
  const plane = await testPlaneTrust();
  const late = joinTo(node, plane, { spend: async () => false });
  await expect(late).rejects.toMatchObject({ code: 'unauthorized' });
  expect(node.trust.state).toBe('alone');
  await joinTo(node, plane);
});

test('a join fails to connect if nothing listens', async () => {
  const unused = tls.createServer().listen(0, '127.0.0.1');
  await once(unused, 'listening');
  const { port } = unused.address() as AddressInfo;
  unused.close();
  await once(unused, 'close');
  const joining = joinTo({ port }, await testPlaneTrust());
  await expect(joining).rejects.toThrow('failed to connect to remote node');
});

/** A man in the middle who shows `cert` to the plane. */
async function impostor(ca: KeyPair): Promise<{ port: number; seen: () => number }> {
  const { cert, key } = await makeJoinLeaf(ca, 'node', Date.now());
  let seen = 0;
  const server = tls.createServer({ cert, key, ca: ca.cert, minVersion: 'TLSv1.3', ALPNProtocols: ['h2'] });
  server.on('secureConnection', (socket) => {
    socket.on('error', () => {});
    socket.on('data', (data) => {
      seen += data.length;
    });
  });
  server.on('tlsClientError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port, seen: () => seen };
}

test('a man in the middle without the token gets nothing from the plane', async () => {
  const key = await makeKey();
  const own = { key, cert: await makeCa(key, Date.now()) };
  for (const ca of [own, await joinCa(OTHER_TOKEN)]) {
    const between = await impostor(ca);
    const joining = joinTo(between, await testPlaneTrust());
    await expect(joining).rejects.toMatchObject({ code: 'unauthorized' });
    expect(between.seen()).toBe(0);
  }
});

test('a plane rejects a node that presents the plane’s side of the proof', async () => {
  // A certificate of the right authority that was not issued for a node.
  const { cert, key } = await leafOf(await joinCa(BOOTSTRAP), {
    uri: 'svc:join:plane',
    names: [JOIN_NAME],
    usages: ['server'],
  });
  const server = tls.createServer({ cert, key, minVersion: 'TLSv1.3', ALPNProtocols: ['h2'] });
  server.on('tlsClientError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const joining = joinTo({ port }, await testPlaneTrust());
  await expect(joining).rejects.toMatchObject({ code: 'unauthorized' });
});

/** The result of a join's first call for a client that shows `own` at the join name. */
async function beginAs(port: number, own: Partial<KeyPair>): Promise<string> {
  const { cert: ca } = await joinCa(BOOTSTRAP);
  const connection = await dial({ port }, { ca, ...own }, { servername: JOIN_NAME, verify: () => undefined });
  try {
    const begun = await createClient(JoinService, connection.transport).beginJoin({ speaks: versionInfo() });
    return begun.nodeId;
  } catch (error) {
    return toProblem(error).code;
  }
}

test('an unknown client that uses the join name gets nothing from the node', async () => {
  const node = await openTrustedNode({ mode: 'tls' });
  const plane = await testPlaneTrust();
  const { cert, key } = plane.identity()!;
  expect(await beginAs(node.port, {})).toBe('node_unreachable');
  expect(await beginAs(node.port, { cert, key })).toBe('node_unreachable');
  const guess = await makeJoinLeaf(await joinCa(OTHER_TOKEN), 'plane', Date.now());
  expect(await beginAs(node.port, guess)).toBe('node_unreachable');
  const node_side = await makeJoinLeaf(await joinCa(BOOTSTRAP), 'node', Date.now());
  expect(await beginAs(node.port, node_side)).toBe('node_unreachable');
  const clothed = await leafOf(await joinCa(BOOTSTRAP), { uri: 'svc:join:node', usages: ['client'] });
  expect(await beginAs(node.port, clothed)).toBe('node_unreachable');
  expect(new Set(node.reasons)).toEqual(
    new Set(['the peer did not prove the bootstrap token, or the token is already used']),
  );
  expect(node.reasons).toHaveLength(5);
  expect(node.trust.joinable).toBe(true);

  const right = await makeJoinLeaf(await joinCa(BOOTSTRAP), 'plane', Date.now());
  expect(await beginAs(node.port, right)).toBe('web-1');
});

test('the join name serves nothing else, and no other name serves the join', async () => {
  const node = await openTrustedNode();
  const plane = await testPlaneTrust();
  const ca = await joinCa(BOOTSTRAP);
  const own = await makeJoinLeaf(ca, 'plane', Date.now());
  const joining = await dial(
    node,
    { ca: ca.cert, ...own },
    { servername: JOIN_NAME, verify: () => undefined },
  );
  expect(await outcome(joining, await plane.token())).toBe('unauthorized');

  await joinTo(node, plane);
  // A connection that was open before the token was used is rejected too.
  const late = createClient(JoinService, joining.transport).beginJoin({ speaks: versionInfo() });
  await expect(late.catch((error) => Promise.reject(toProblem(error)))).rejects.toThrow('unauthorized');

  const operational = await dial(node, plane.identity()!);
  const headers = { authorization: `Bearer ${await plane.token()}` };
  const begin = createClient(JoinService, operational.transport).beginJoin(
    { speaks: versionInfo() },
    { headers },
  );
  await expect(begin.catch((error) => Promise.reject(toProblem(error)))).rejects.toThrow('unauthorized');
});

test('configured token settings take precedence over the plane’s, whose secret is then not stored', async () => {
  const node = await openTrustedNode({ shared_secret: SECRET, issuer: 'mine', mode: 'tls' });
  const plane = await testPlaneTrust();
  await joinTo(node, plane);
  const kept = await readFile(join(node.options.cert_dir, 'auth.json'), 'utf8');
  expect(JSON.parse(kept)).toEqual({ audience: 'svc-internal' });
  expect(await readdir(node.options.cert_dir)).not.toContain('auth_secret.txt');

  const connection = await dial(node, plane.identity()!);
  expect(await outcome(connection, await plane.token())).toBe('unauthorized');
  const like = await testPlaneTrust({ shared_secret: SECRET, issuer: 'mine' });
  expect(await outcome(connection, await like.token())).toBe('ok');
});

test('a join that was interrupted at any file can be repeated', async () => {
  const node = await openTrustedNode();
  const plane = await testPlaneTrust();
  await joinTo(node, plane);
  const { cert_dir } = node.options;
  const files = ['joined.json', 'ca.pem', 'cert.pem', 'auth.json', 'auth_secret.txt'] as const;
  const full = await Promise.all(files.map((file) => readFile(join(cert_dir, file), 'utf8')));
  const key = await readFile(join(cert_dir, 'key.pem'), 'utf8');
  const unspent = JSON.stringify({ ...JSON.parse(full[0]!), spent: [] });

  for (const written of files.keys()) {
    const folder = await testFolder();
    await writeFile(join(folder, 'key.pem'), key);
    await writeFile(join(folder, 'joined.json'), unspent);
    for (let i = 1; i <= written; i++) await writeFile(join(folder, files[i]!), full[i]!);
    const again = await openTrustedNode({ cert_dir: folder });
    await joinTo(again, plane);
    expect(again.trust.joinable).toBe(false);
    expect(await outcome(await dial(again, plane.identity()!), await plane.token())).toBe('ok');
  }
});

test('a join that failed at any file can be repeated, even after a restart', async () => {
  for (const file of ['ca.pem', 'cert.pem', 'auth.json', 'auth_secret.txt']) {
    const node = await openTrustedNode();
    const plane = await testPlaneTrust();
    const blocked = join(node.options.cert_dir, file);
    await mkdir(blocked);
    await expect(joinTo(node, plane)).rejects.toThrow('failed to connect to remote node');
    await rmdir(blocked);
    const again = await openTrustedNode(node.options);
    await joinTo(again, plane);
    expect(await outcome(await dial(again, plane.identity()!), await plane.token())).toBe('ok');
  }
});

test('a second join that was interrupted between its files can be repeated', async () => {
  const node = await openTrustedNode();
  await joinTo(node, await testPlaneTrust());
  const other = await testPlaneTrust({ plane_id: 'pln_other' });
  const { cert_dir } = node.options;
  const before = await readFile(join(cert_dir, 'cert.pem'), 'utf8');
  const second = await openTrustedNode({ ...node.options, bootstrap_token: OTHER_TOKEN });
  await joinTo(second, other, { bootstrap_token: OTHER_TOKEN });

  // The state after the new ca.pem, before the new cert.pem.
  const joined = JSON.parse(await readFile(join(cert_dir, 'joined.json'), 'utf8'));
  await writeFile(join(cert_dir, 'joined.json'), JSON.stringify({ ...joined, spent: [joined.spent[0]] }));
  await writeFile(join(cert_dir, 'cert.pem'), before);
  const third = await openTrustedNode({ ...node.options, bootstrap_token: OTHER_TOKEN });
  expect(third.trust.state).toBe('alone');
  await joinTo(third, other, { bootstrap_token: OTHER_TOKEN });
  expect(await outcome(await dial(third, other.identity()!), await other.token())).toBe('ok');
});

test('a renewal issues a new certificate for the same key, without a restart', async () => {
  const node = await openTrustedNode();
  const plane = await testPlaneTrust();
  await joinTo(node, plane);
  const { cert_dir } = node.options;
  const read = () =>
    Promise.all(['cert.pem', 'key.pem', 'ca.pem'].map((file) => readFile(join(cert_dir, file), 'utf8')));
  const [cert, key, ca] = await read();

  const connection = await dial(node, plane.identity()!);
  await renewNode({
    transport: connection.transport,
    node_id: 'web-1',
    names: ['127.0.0.1', 'renewed.example'],
    trust: plane,
  });
  const [new_cert, new_key, new_ca] = await read();
  expect(new_cert).not.toBe(cert);
  expect([new_key, new_ca]).toEqual([key, ca]);
  expect(await outcome(connection, await plane.token())).toBe('ok');
  const renewed = await dial(node, plane.identity()!, { servername: 'renewed.example' });
  expect(await outcome(renewed, await plane.token())).toBe('ok');
});

test('rejects a certificate for another id, another key or of another authority', async () => {
  const node = await openTrustedNode();
  const plane = await testPlaneTrust();
  const other = await testPlaneTrust();
  const { ca } = plane.identity()!;
  const handed = { plane_id: 'pln_test', ca, ...plane.tokenSettings() };
  const csr = await node.trust.csr();
  const stranger = await openTrustedNode();
  const wrong = {
    id: await plane.issue(csr, 'web-2', []),
    key: await plane.issue(await stranger.trust.csr(), 'web-1', []),
    authority: await other.issue(csr, 'web-1', []),
    malformed: 'no certificate',
  };
  for (const certificate of Object.values(wrong)) {
    await expect(node.trust.completeJoin({ ...handed, certificate })).rejects.toThrow();
  }
  expect(node.trust.joinable).toBe(true);
  expect(await readdir(node.options.cert_dir)).toEqual(['key.pem']);

  await joinTo(node, plane);
  for (const certificate of Object.values(wrong)) {
    await expect(node.trust.renew({ certificate, ca })).rejects.toThrow();
  }
  const foreign = { certificate: wrong.authority, ca: other.identity()!.ca };
  await expect(node.trust.renew(foreign)).rejects.toThrow('new authority');
  expect(await outcome(await dial(node, plane.identity()!), await plane.token())).toBe('ok');
});

test('a new authority ends the connections of the old one', async () => {
  const node = await openTrustedNode();
  const plane = await testPlaneTrust();
  await joinTo(node, plane);
  const connection = await dial(node, plane.identity()!);
  expect(await outcome(connection, await plane.token())).toBe('ok');
  const other = await testPlaneTrust({ plane_id: 'pln_other' });
  const { cert_dir } = node.options;
  const again = await NodeTrust.open({ ...node.options, bootstrap_token: OTHER_TOKEN });
  onTestFinished(() => again.close());
  await again.completeJoin({
    plane_id: 'pln_other',
    certificate: await other.issue(await again.csr(), 'web-1', ['127.0.0.1']),
    ca: other.identity()!.ca,
    ...other.tokenSettings(),
  });
  expect(await readFile(join(cert_dir, 'ca.pem'), 'utf8')).toBe(other.identity()!.ca);
  // The first process detects the changed files.
  await node.trust.refresh();
  await connection.closed;
  expect(await outcome(await dial(node, other.identity()!), await other.token())).toBe('ok');
});

test('a join ends the connections of the plane before, even if both planes have the same secret', async () => {
  const first = await testPlaneTrust({ shared_secret: SECRET });
  const other = await testPlaneTrust({ shared_secret: SECRET, plane_id: 'pln_other' });
  const { options, ...before } = await openTrustedNode();
  await joinTo(before, first);
  const during: string[] = [];
  const node = await openTrustedNode({
    ...options,
    bootstrap_token: OTHER_TOKEN,
    onJoin: async () => {
      during.push(await outcome(connection, await first.token()));
    },
  });
  const connection = await dial(node, first.identity()!);
  expect(await outcome(connection, await first.token())).toBe('ok');
  await joinTo(node, other, { bootstrap_token: OTHER_TOKEN });
  expect(during).toEqual(['failed to connect to remote node']);
  await connection.closed;
  await expect(dial(node, first.identity()!)).rejects.toThrow('certificate');
});

test('with the operator’s certificates, nothing is joined or issued', async () => {
  const own = await testPlaneTrust();
  const cert_dir = await testFolder();
  const { ca, cert, key } = own.identity()!;
  await writeFile(join(cert_dir, 'ca.pem'), ca);
  await writeFile(join(cert_dir, 'cert.pem'), cert);
  await writeFile(join(cert_dir, 'key.pem'), key);
  const plane = await testPlaneTrust({ cert_dir });
  expect(plane.origin).toBe('operator');
  const node = await openTrustedNode();
  await expect(joinTo(node, plane)).rejects.toMatchObject({ code: 'joining_not_possible' });
  await expect(plane.issue(await node.trust.csr(), 'web-1', [])).rejects.toThrow('operator');
  expect(node.trust.joinable).toBe(true);
});
