/** The certificate of the public listener while its files change. */
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { type Logger, silentLog } from '../base/log.ts';
import type { Config } from '../core/config.ts';
import { type Certificate, type Listener, openListener } from '../server/listener.ts';
import { Metrics } from '../server/metrics.ts';
import { fakeHandlers } from '../testing/handlers.ts';
import { TestAuthority } from '../testing/planes.ts';
import { Closing } from './closing.ts';
import { loadConfig } from './config.ts';
import { openPlaneHttp, publicAddress } from './http.ts';
import { limits } from './limits.ts';
import { followCertificate } from './tls.ts';

let old: Certificate;
let renewed: Certificate;
let folder: string;
let config: Config;
let listener: Listener;
let opened: Closing;
let logged: unknown[];
let reload: () => void;
let announced: string[];

beforeAll(async () => {
  const authority = await TestAuthority.create();
  [old, renewed] = await Promise.all([authority.plane('old'), authority.plane('renewed')]);
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
});
afterAll(() => {
  vi.useRealTimers();
});

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-tls-'));
  const env = {
    SVC_SERVER_LISTEN: '127.0.0.1:0',
    SVC_SERVER_TLS_CERT: path('cert'),
    SVC_SERVER_TLS_KEY: path('key'),
  };
  config = loadConfig({ env, cwd: folder, home: folder, system_file: join(folder, 'none.toml') });
  await write(old);
  listener = await openListener(await publicAddress(config));
  opened = new Closing();
  logged = [];
  announced = [];
  const log: Logger = Object.assign(Object.create(silentLog), {
    info: (message: string) => logged.push(message),
    error: ({ err }: { err: Error }) => logged.push(err.message),
  });
  const onReload = (fn: () => void) => {
    reload = fn;
  };
  const certified = (pem: string) => announced.push(pem);
  followCertificate({ config, listener, log, onReload, certified }, opened);
});
afterEach(async () => {
  await opened.close();
  await listener.close();
  await rm(folder, { recursive: true });
});

const path = (name: string) => join(folder, `${name}.pem`);
async function write({ cert, key }: Partial<Certificate>): Promise<void> {
  if (cert !== undefined) await writeFile(path('cert'), cert);
  if (key !== undefined) await writeFile(path('key'), key);
}
const check = () => vi.advanceTimersByTime(limits.public_certificate_check_ms);
const UNUSABLE = /^server\.tls\.cert and server\.tls\.key cannot be used: /;
const RELOADED = 'certificate of the public listener reloaded';

/** Whether a new connection gets this certificate. */
async function expectShown({ cert }: Certificate): Promise<void> {
  const socket = connect({ port: listener.address.port, host: '127.0.0.1', rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  expect(socket.getPeerX509Certificate()?.fingerprint256).toBe(new X509Certificate(cert).fingerprint256);
  socket.destroy();
}

test('new connections use a renewed certificate', async () => {
  await write(renewed);
  await expectShown(old);
  check();
  await expect.poll(() => logged).toEqual([RELOADED]);
  await expectShown(renewed);
  const fingerprint = (pem: string) => new X509Certificate(pem).fingerprint256;
  expect(announced.map(fingerprint)).toEqual([old.cert, renewed.cert].map(fingerprint));
});

test('a reload does not wait for the next check', async () => {
  await write(renewed);
  reload();
  await expect.poll(() => logged).toEqual([RELOADED]);
  await expectShown(renewed);
});

test('files that do not match or cannot be read are logged once, and the old certificate stays in use', async () => {
  await write({ cert: renewed.cert });
  check();
  await expect.poll(() => logged).toEqual([expect.stringMatching(UNUSABLE)]);
  await expectShown(old);
  await rm(path('key'));
  check();
  await expect.poll(() => logged).toHaveLength(2);
  expect(logged[1]).toBe(`server.tls.key ${path('key')} cannot be read: ENOENT`);
  check();
  await expectShown(old);
  await write(renewed);
  check();
  await expect.poll(() => logged.slice(2)).toEqual([RELOADED]);
  await expectShown(renewed);
});

test('a plane takes over with its open listener although the files do not match at that moment', async () => {
  await write({ cert: renewed.cert });
  const core = {
    ...{ config, settings: { get: () => true }, store: { server: null }, idempotency: {} },
    ...{ metrics: new Metrics(), log: silentLog },
  };
  const features = { routes: () => fakeHandlers({}), resources: () => ({}) };
  const options = { tokens: null as never, listener, ready: () => true };
  const http = await openPlaneHttp(core as never, features as never, options);
  await expectShown(old);
  await http.drain();
});
