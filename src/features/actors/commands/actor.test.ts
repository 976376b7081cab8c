/** `svc actor` against a listener in this process: address, credentials, and error messages. */
import { X509Certificate } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { silentLog } from '../../../base/log.ts';
import { type ConfigKey, configKeys } from '../../../core/config.ts';
import { invalid, problems } from '../../../core/problem.ts';
import { type LeafContent, makeCa, makeKey, makeLeaf } from '../../../link/trust/pki.ts';
import { type ActorListener, openActorListener } from '../../../server/actors/listener.ts';
import { type RunResult, run } from '../../../testing/cli.ts';

const SECRET = 'a shared secret of more than 32 bytes';

let home: string;
let calls: { method: string; params: unknown; token: string | null }[];

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-actor-'));
  calls = [];
});

interface TestListener extends ActorListener {
  ca: string;
  cert: string;
  key: string;
  ca_key: string;
}

/** `accepts`: whether a token is valid; every other one is `unauthorized`. */
async function openTestListener(
  accepts: (token: string | null) => boolean = () => true,
  more: Partial<LeafContent> = {},
  isOperator?: (certificate: X509Certificate) => boolean,
): Promise<TestListener> {
  const key = await makeKey();
  const ca = { key, cert: await makeCa(key, Date.now()) };
  const leaf_key = await makeKey();
  const cert = await makeLeaf(ca, leaf_key, {
    ...{ title: 'plane', uri: 'svc:plane:pln_a', names: ['127.0.0.1'], usages: ['server'] },
    ...{ now_ms: Date.now(), lifetime_ms: 3_600_000 },
    ...more,
  });
  const listener = await openActorListener({
    ...{ host: '127.0.0.1', port: 0, log: silentLog },
    certificate: { cert, key: leaf_key },
    ...(isOperator && { isOperator }),
    call: async ({ method, params, token }) => {
      const call = { method, params: JSON.parse(params) as unknown, token };
      calls.push(call);
      if (!accepts(token)) throw problems.actorUnauthorized();
      return { answer: call.params };
    },
  });
  onTestFinished(async () => {
    await listener.close();
    await rm(home, { recursive: true, force: true });
  });
  return { ...listener, ca: ca.cert, ca_key: key, cert, key: leaf_key };
}

/** An agent's variables and files. */
async function agentOf(
  listener: TestListener,
  place: object | string | null = null,
): Promise<Record<string, string>> {
  const endpoint = `https://127.0.0.1:${listener.port}`;
  await writeFile(join(home, 'ca.pem'), listener.ca);
  await writeFile(join(home, 'ses_a.token'), 'ses_a.secret\n');
  const text = typeof place === 'string' ? place : JSON.stringify(place ?? { endpoint });
  await writeFile(join(home, 'actor.json'), text);
  return {
    SVC_ACTOR_ENDPOINT: endpoint,
    SVC_ACTOR_TOKEN_FILE: join(home, 'ses_a.token'),
    SVC_ACTOR_CA_FILE: join(home, 'ca.pem'),
    SVC_SESSION_ID: 'ses_a',
  };
}

type Values = Partial<Record<ConfigKey, unknown>>;

async function whoami(
  env: Record<string, string>,
  values: Values = {},
  args: string[] = [],
): Promise<RunResult> {
  const get = (key: ConfigKey) => (Object.hasOwn(values, key) ? values[key] : configKeys[key].default);
  const config = { get, entry: () => null as never, file: null, warnings: [] };
  const loadConfig = () => config as never;
  return run(['actor', 'whoami', ...args], { home, env, local: { loadConfig } });
}

/** This machine's configuration, for a shell outside an agent. */
async function configured(listener: TestListener, more: Values = {}): Promise<Values> {
  const cert_dir = join(home, 'certs');
  await mkdir(cert_dir);
  await writeFile(join(cert_dir, 'ca.pem'), listener.ca);
  await writeFile(join(cert_dir, 'cert.pem'), listener.cert);
  return {
    'internal_grpc.enabled': true,
    'internal_grpc.listen': `0.0.0.0:${listener.port}`,
    'internal_grpc.security.cert_dir': cert_dir,
    'internal_grpc.auth.shared_secret': SECRET,
    ...more,
  };
}

test('an agent calls with its own token, and the plane’s answer is printed unchanged', async () => {
  const env = await agentOf(await openTestListener());
  expect(await whoami(env)).toEqual({ code: 0, stdout: '{"answer":{}}\n', stderr: '' });
  expect(calls).toMatchObject([{ method: 'whoami', params: {}, token: 'ses_a.secret' }]);
});

test('the actor comes from the flag, else from SVC_ACTOR_ID', async () => {
  const env = { ...(await agentOf(await openTestListener())), SVC_ACTOR_ID: 'user:ana' };
  await whoami(env);
  await whoami(env, {}, ['--actor-id', 'user:eve']);
  expect(calls.map(({ params }) => params)).toEqual([{ actor_id: 'user:ana' }, { actor_id: 'user:eve' }]);
});

test('a configured secret is tried first, and the agent’s own token if the plane rejects the secret', async () => {
  const listener = await openTestListener((token) => token === 'ses_a.secret');
  const env = await agentOf(listener);
  const values = { 'internal_grpc.auth.shared_secret': SECRET, 'internal_grpc.auth.issuer': 'mine' };
  expect((await whoami(env, values, ['--actor-id', 'user:ana'])).code).toBe(0);
  expect(calls.map(({ token }) => token!.split('.').length)).toEqual([3, 2]);
  expect(decodeJwt(calls[0]!.token!)).toMatchObject({
    ...{ iss: 'mine', aud: 'svc-internal', sub: 'user:ana', session_id: 'ses_a' },
  });
});

test('sends no token if the plane accepts the secret', async () => {
  const env = await agentOf(await openTestListener((token) => token !== 'ses_a.secret'));
  expect((await whoami(env, { 'internal_grpc.auth.shared_secret': SECRET })).code).toBe(0);
  expect(calls).toHaveLength(1);
});

test('the latest published address takes precedence over the one from the agent’s start', async () => {
  const listener = await openTestListener();
  const env = { ...(await agentOf(listener)), SVC_ACTOR_ENDPOINT: 'https://127.0.0.1:1' };
  expect((await whoami(env)).code).toBe(0);
  for (const broken of ['', '{', '[]', '{"endpoint":7}', '{"endpoint":"file:///etc/passwd"}']) {
    expect((await whoami(await agentOf(listener, broken))).code).toBe(0);
  }
});

test('a certificate for another name is verified by the published name', async () => {
  const listener = await openTestListener(() => true, { names: ['web-1.example'] });
  const refused = { code: 1, stderr: 'svc: certificate verify failed\n' };
  expect(await whoami(await agentOf(listener))).toMatchObject(refused);
  const endpoint = `https://127.0.0.1:${listener.port}`;
  expect(await whoami(await agentOf(listener, { endpoint, server_name: 'web-1.example' }))).toMatchObject({
    code: 0,
  });
  expect(await whoami(await agentOf(listener, { endpoint, server_name: 'web-2.example' }))).toMatchObject(
    refused,
  );
  await writeFile(join(home, 'other.pem'), (await openTestListener()).ca);
  const stranger = { ...(await agentOf(listener)), SVC_ACTOR_CA_FILE: join(home, 'other.pem') };
  expect(await whoami(stranger)).toMatchObject(refused);
  expect(calls).toHaveLength(1);
});

test('trusts an operator’s certificate without its authority as it is', async () => {
  const listener = await openTestListener();
  const env = await agentOf({ ...listener, ca: listener.cert });
  expect((await whoami(env)).code).toBe(0);
});

test('outside an agent, the configuration has the address and the certificates to trust', async () => {
  const values = await configured(await openTestListener());
  expect((await whoami({}, values)).code).toBe(0);
  expect(decodeJwt(calls[0]!.token!)).toMatchObject({ sub: '' });
  // A shell in an agent may use another configuration.
  const env = { SVC_ACTOR_ENDPOINT: 'https://127.0.0.1:1', SVC_ACTOR_TOKEN_FILE: join(home, 'none') };
  expect((await whoami(env, values, ['--config', 'other.toml'])).code).toBe(0);
  expect((await whoami(env, values)).stderr).toMatch(/SVC_ACTOR_CA_FILE .* cannot be read: ENOENT/);
});

test('in mtls the certificate directory is sufficient, and a configured token is sent too', async () => {
  const is_own = (cert: X509Certificate) =>
    cert.publicKey.equals(new X509Certificate(listener.cert).publicKey);
  const listener = await openTestListener(() => true, { usages: ['server', 'client'] }, is_own);
  const values = await configured(listener, { 'internal_grpc.auth.shared_secret': null });
  const mtls = { ...values, 'internal_grpc.security.mode': 'mtls' };
  await writeFile(join(home, 'certs', 'key.pem'), listener.key);
  expect(await whoami({}, mtls, ['--actor-id', 'user:ana'])).toMatchObject({ code: 0, stderr: '' });
  await whoami({}, { ...mtls, 'internal_grpc.auth.shared_secret': SECRET });
  expect(calls.map(({ token, params }) => [token?.split('.').length, params])).toEqual([
    [undefined, { actor_id: 'user:ana' }],
    [3, {}],
  ]);
  expect(await whoami({}, values)).toMatchObject({ code: 1 });

  // A node's certificate from the same authority is not the operator's.
  const node_key = await makeKey();
  const cert = await makeLeaf({ cert: listener.ca, key: listener.ca_key }, node_key, {
    ...{ title: 'node', uri: 'svc:node:n1', names: ['127.0.0.1'], usages: ['server', 'client'] },
    ...{ now_ms: Date.now(), lifetime_ms: 3_600_000 },
  });
  await writeFile(join(home, 'certs', 'cert.pem'), cert);
  await writeFile(join(home, 'certs', 'key.pem'), node_key);
  expect(await whoami({}, mtls)).toEqual({ code: 4, stdout: '', stderr: 'svc: unauthorized\n' });
  expect(calls).toHaveLength(2);
});

test('prints one line if there is no address or no credential', async () => {
  const listener = await openTestListener();
  const values = await configured(listener, { 'internal_grpc.auth.shared_secret': null });
  await writeFile(join(home, 'certs', 'auth_secret.txt'), JSON.stringify({ shared_secret: SECRET }));
  const actorIdWith = async (env: Record<string, string>, with_values: Values) => {
    const { code, stdout, stderr } = await whoami(env, with_values);
    expect(stdout).toBe('');
    return [code, stderr];
  };
  const not_configured = [1, 'svc: internal_grpc.auth.shared_secret is not configured\n'];
  expect(await actorIdWith({}, values)).toEqual(not_configured);
  const nothing = { SVC_ACTOR_ENDPOINT: `https://127.0.0.1:${listener.port}` };
  expect(await actorIdWith(nothing, values)).toEqual(not_configured);
  expect(await actorIdWith(nothing, { ...values, 'internal_grpc.auth.shared_secret': SECRET })).toEqual([
    1,
    'svc: SVC_ACTOR_CA_FILE is not set\n',
  ]);
  const { SVC_ACTOR_TOKEN_FILE: token_file, ...without } = await agentOf(listener);
  expect(await actorIdWith(without, values)).toEqual(not_configured);
  expect(await actorIdWith({}, { ...values, 'internal_grpc.enabled': false })).toEqual([
    1,
    'svc: internal grpc client not available\n',
  ]);
  await rm(token_file!);
  expect(await actorIdWith({ ...without, SVC_ACTOR_TOKEN_FILE: token_file! }, values)).toEqual([
    4,
    'svc: unauthorized\n',
  ]);
  await listener.close();
  expect(await actorIdWith(await agentOf(listener), values)).toEqual([
    1,
    'svc: failed to connect to remote node\n',
  ]);
  expect(calls).toEqual([]);
});

test('ignores a configuration that an agent cannot read; elsewhere it is an error', async () => {
  const env = await agentOf(await openTestListener());
  const loadConfig = () => {
    throw invalid('config file /etc/svc/config.toml cannot be read: EACCES');
  };
  const runAs = (with_env: Record<string, string>) =>
    run(['actor', 'whoami'], { home, env: with_env, local: { loadConfig } });
  expect(await runAs(env)).toMatchObject({ code: 0 });
  expect(await runAs({})).toMatchObject({ code: 1, stderr: expect.stringContaining('EACCES') });
});
