import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { configurationPage } from '../../scripts/reference/configuration.ts';
import {
  type ConfigKey,
  checkValue,
  configKeyNames,
  configKeys,
  isLoopback,
  parseAddress,
} from '../core/config.ts';
import { type ConfigSources, loadConfig, refusals } from './config.ts';

const top = mkdtempSync(join(tmpdir(), 'svc-config-'));
afterAll(() => rmSync(top, { recursive: true, force: true }));
let made = 0;

function place(files: Record<string, string> = {}): { dir: string; sources: ConfigSources } {
  const dir = join(top, String(++made));
  mkdirSync(dir);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(dir, name, '..'), { recursive: true });
    writeFileSync(join(dir, name), text, { mode: 0o600 });
  }
  return { dir, sources: { env: {}, cwd: dir, home: dir, system_file: join(dir, 'etc.toml') } };
}

function flags(values: Partial<Record<ConfigKey, string>>) {
  return new Map(
    Object.entries(values).map(([key, text]) => [key as ConfigKey, { text, flag: `--set ${key}` }]),
  );
}

function complaint(fn: () => unknown): string {
  try {
    fn();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('nothing was refused');
}

describe('precedence', () => {
  const file = '[server]\nlisten = "127.0.0.1:1"\n';

  test('a default applies until something overrides it', () => {
    const { dir, sources } = place();
    const config = loadConfig(sources);
    expect(config.file).toBeNull();
    expect(config.entry('server.listen')).toEqual({
      value: '127.0.0.1:8080',
      origin: 'default',
      source: null,
    });
    expect(config.get('data_dir')).toBe(join(dir, '.local/share/svc'));
    expect(config.get('internal_grpc.security.cert_dir')).toBe(join(dir, '.local/share/svc/internal-grpc'));
  });

  test('the file overrides the default, the environment the file, a flag the environment', () => {
    const { dir, sources } = place({ 'c.toml': file });
    const withFile = { ...sources, file: 'c.toml' };
    expect(loadConfig(withFile).entry('server.listen')).toEqual({
      value: '127.0.0.1:1',
      origin: 'file',
      source: `${join(dir, 'c.toml')}:2`,
    });
    const withEnv = { ...withFile, env: { SVC_SERVER_LISTEN: '127.0.0.1:2' } };
    expect(loadConfig(withEnv).entry('server.listen')).toEqual({
      value: '127.0.0.1:2',
      origin: 'env',
      source: 'SVC_SERVER_LISTEN',
    });
    const withFlag = { ...withEnv, flags: flags({ 'server.listen': '127.0.0.1:3' }) };
    expect(loadConfig(withFlag).entry('server.listen')).toMatchObject({
      value: '127.0.0.1:3',
      origin: 'flag',
    });
  });

  test('the file is --config, else SVC_CONFIG, else XDG, else the system-wide one', () => {
    const listen = (port: number) => `server.listen = "127.0.0.1:${port}"`;
    const { dir, sources } = place({
      'flag.toml': listen(1),
      'env.toml': listen(2),
      'xdg/svc/config.toml': listen(3),
      'etc.toml': listen(4),
    });
    const env = { SVC_CONFIG: 'env.toml', XDG_CONFIG_HOME: join(dir, 'xdg') };
    const read = (changes: Partial<ConfigSources>) =>
      loadConfig({ ...sources, ...changes }).get('server.listen');
    expect(read({ env, file: 'flag.toml' })).toBe('127.0.0.1:1');
    expect(read({ env })).toBe('127.0.0.1:2');
    expect(read({ env: { XDG_CONFIG_HOME: env.XDG_CONFIG_HOME } })).toBe('127.0.0.1:3');
    expect(read({ env: { XDG_CONFIG_HOME: 'relative/is/ignored' } })).toBe('127.0.0.1:4');
  });

  test('a given file that is missing is an error', () => {
    const { dir, sources } = place();
    expect(complaint(() => loadConfig({ ...sources, file: 'no.toml' }))).toBe(
      `config file ${join(dir, 'no.toml')} does not exist`,
    );
  });

  test('an empty value counts as unset', () => {
    const { sources } = place({ 'c.toml': 'web.rp_id = ""\n[server]\nlisten = "127.0.0.1:1"\n' });
    const config = loadConfig({ ...sources, file: 'c.toml', env: { SVC_SERVER_LISTEN: '' } });
    expect(config.get('server.listen')).toBe('127.0.0.1:1');
    expect(config.entry('web.rp_id')).toEqual({ value: null, origin: 'default', source: null });
  });
});

describe('environment', () => {
  test('every key has a unique variable', () => {
    const { sources } = place();
    const secret = 'SVC_INTERNAL_GRPC_AUTH_SHARED_SECRET';
    const config = loadConfig({
      ...sources,
      env: { [secret]: 's3cret', SVC_AUTH_MIN_PASSWORD_LENGTH: '14', SVC_SERVER_BEHIND_PROXY: 'true' },
    });
    expect(config.get('internal_grpc.auth.shared_secret')).toBe('s3cret');
    expect(config.get('auth.min_password_length')).toBe(14);
    expect(config.get('server.behind_proxy')).toBe(true);
  });

  test('lists are split at commas', () => {
    const { sources } = place();
    const config = loadConfig({ ...sources, env: { SVC_SAFE_PATHS: '/a, /b,,~/c' } });
    expect(config.get('safe_paths')).toEqual(['/a', '/b', join(sources.home, 'c')]);
  });

  test('lists may be JSON, and text in brackets that is not JSON is rejected', () => {
    const { sources } = place();
    const flags = (text: string) => new Map([['safe_paths' as const, { text, flag: '--set safe_paths' }]]);
    const env = { SVC_SAFE_PATHS: '["/a, b", "~/c"]' };
    expect(loadConfig({ ...sources, env }).get('safe_paths')).toEqual(['/a, b', join(sources.home, 'c')]);
    expect(loadConfig({ ...sources, env, flags: flags('["/x"]') }).get('safe_paths')).toEqual(['/x']);
    expect(complaint(() => loadConfig({ ...sources, flags: flags("['/x']") }))).toBe(
      'safe_paths must be a list of paths (--set safe_paths)',
    );
  });

  test('_FILE reads the value from a file, without its last newline; the variable itself takes precedence', () => {
    const { sources } = place({ secret: 'from file\n' });
    const env = { SVC_INTERNAL_GRPC_BOOTSTRAP_TOKEN_FILE: 'secret' };
    expect(loadConfig({ ...sources, env }).entry('internal_grpc.bootstrap.token')).toEqual({
      value: 'from file',
      origin: 'env',
      source: 'SVC_INTERNAL_GRPC_BOOTSTRAP_TOKEN_FILE',
    });
    const both = { ...env, SVC_INTERNAL_GRPC_BOOTSTRAP_TOKEN: 'direct' };
    expect(loadConfig({ ...sources, env: both }).get('internal_grpc.bootstrap.token')).toBe('direct');
    expect(
      complaint(() => loadConfig({ ...sources, env: { SVC_INTERNAL_GRPC_BOOTSTRAP_TOKEN_FILE: 'missing' } })),
    ).toContain('internal_grpc.bootstrap.token cannot be read from missing');
  });

  test('reports a variable that almost matches a key, but not agents’ variables', () => {
    const { sources } = place();
    const env = { SVC_SERVER_LISTN: '127.0.0.1:1', SVC_AGENT_ID: 'agt_x', SVC_TOKEN: 't' };
    expect(loadConfig({ ...sources, env }).warnings).toEqual([
      'unknown variable SVC_SERVER_LISTN is ignored: did you mean SVC_SERVER_LISTEN?',
    ]);
  });
});

describe('errors', () => {
  test('an unknown key is reported with the nearest one, the file and the line', () => {
    const { dir, sources } = place({
      'c.toml': '# note\nsafe_paths = [\n  "/a",\n]\n[server]\n\nlisten = "127.0.0.1:1"\nrol = "x"\n',
    });
    expect(complaint(() => loadConfig({ ...sources, file: 'c.toml' }))).toBe(
      `unknown key server.rol: did you mean server.role? (${join(dir, 'c.toml')}:8)`,
    );
  });

  test('an unknown section is reported with the nearest key too', () => {
    const { sources } = place({ 'c.toml': '[internal-grpc]\nenabled = true\n' });
    expect(complaint(() => loadConfig({ ...sources, file: 'c.toml' }))).toContain(
      'unknown key internal-grpc.enabled: did you mean internal_grpc.enabled?',
    );
  });

  test.each([
    ['auth.min_password_length = "12"', 'auth.min_password_length must be an integer from 1 to 1024'],
    ['auth.min_password_length = 0', 'auth.min_password_length must be an integer from 1 to 1024'],
    ['server.listen = "8080"', 'server.listen must be <host>:<port>'],
    ['server.listen = "a:99999"', 'server.listen must be <host>:<port>'],
    ['server.behind_proxy = "yes"', 'server.behind_proxy must be true or false'],
    ['safe_paths = "/a"', 'safe_paths must be a list of paths'],
    ['safe_paths = ["/a", 3]', 'safe_paths[1] must be a string'],
    ['web.rp_origin = "https://a.example/"', 'web.rp_origin must be an origin, for example'],
    ['logging.level = "loud"', 'logging.level must be "debug" or "info"'],
    ['agents.sandbox = "bubblewrap"', 'agents.sandbox must be "none" or "bwrap"'],
    ['[server]\nlisten = ', 'c.toml:2: Invalid TOML document'],
    ['__proto__ = 1', 'Invalid TOML document'],
  ])('rejects %s', (text, message) => {
    const { sources } = place({ 'c.toml': text });
    expect(complaint(() => loadConfig({ ...sources, file: 'c.toml' }))).toContain(message);
  });

  test('reports all errors at once', () => {
    const { sources } = place({ 'c.toml': 'nope = 1\n' });
    const message = complaint(() =>
      loadConfig({ ...sources, file: 'c.toml', env: { SVC_RETENTION_DAYS: 'ten' } }),
    );
    expect(message.split('\n')).toHaveLength(2);
    expect(message).toContain('retention.days must be an integer from 1 to 36500 (SVC_RETENTION_DAYS)');
  });

  test('a listener that other machines can reach needs TLS or a proxy', () => {
    const { sources } = place();
    const start = (values: Partial<Record<ConfigKey, string>>) =>
      refusals(loadConfig({ ...sources, flags: flags(values) }));
    expect(start({})).toEqual([]);
    expect(start({ 'server.listen': '[::1]:80' })).toEqual([]);
    expect(start({ 'server.listen': '0.0.0.0:80' })[0]).toMatch(
      /server.listen 0\.0\.0\.0:80 .*server\.behind_proxy/,
    );
    expect(start({ 'server.listen': '[::]:80' })).toHaveLength(1);
    expect(start({ 'server.listen': '0.0.0.0:80', 'server.behind_proxy': 'true' })).toEqual([]);
    expect(start({ 'server.listen': '0.0.0.0:80', 'server.tls.cert': 'c', 'server.tls.key': 'k' })).toEqual(
      [],
    );
    expect(start({ 'server.tls.cert': 'c' })).toEqual([
      'server.tls.key is missing: server.tls needs both cert and key',
    ]);
  });

  test('an unencrypted link is limited to this machine, unless forced', () => {
    const { sources } = place();
    const start = (values: Partial<Record<ConfigKey, string>>) =>
      refusals(loadConfig({ ...sources, flags: flags(values) }));
    const open = {
      'internal_grpc.enabled': 'true',
      'internal_grpc.security.mode': 'disabled',
      'internal_grpc.listen': '0.0.0.0:8081',
    };
    expect(start({ ...open, 'internal_grpc.listen': '127.0.0.1:8081' })).toEqual([]);
    expect(start(open)).toHaveLength(1);
    expect(start({ ...open, 'internal_grpc.allow_disabled': 'true' })).toEqual([]);
  });

  test('planes that share a database need one on a server, and no agents of their own', () => {
    const { sources } = place();
    const start = (values: Partial<Record<ConfigKey, string>>) =>
      refusals(loadConfig({ ...sources, flags: flags({ 'cluster.listen': '127.0.0.1:8090', ...values }) }));
    const complete = {
      'database.url': 'postgres://svc@db/svc',
      'server.local_node': 'false',
      'internal_grpc.enabled': 'true',
    };
    expect(start(complete)).toEqual([]);
    expect(start({}).map((refusal) => refusal.split(',')[0])).toEqual([
      'cluster.listen needs database.url',
      'cluster.listen needs server.local_node = false: agents run on remote nodes only',
      'cluster.listen needs internal_grpc.enabled = true',
    ]);
    const everywhere = { ...complete, 'cluster.listen': '0.0.0.0:8090' };
    expect(start(everywhere)).toEqual([
      'cluster.listen 0.0.0.0:8090 listens on all addresses: set cluster.advertise to the one that the others use',
    ]);
    expect(start({ ...everywhere, 'cluster.advertise': '10.0.0.5:8090' })).toEqual([]);
    expect(start({ ...complete, 'internal_grpc.security.mode': 'disabled' })).toEqual([
      'cluster.listen needs internal_grpc.security.mode "tls" or "mtls"',
    ]);
  });

  test('a node needs an id and the internal listener', () => {
    const { sources } = place();
    const start = (values: Partial<Record<ConfigKey, string>>) =>
      refusals(loadConfig({ ...sources, flags: flags({ 'server.role': 'node', ...values }) }));
    const served = { 'internal_grpc.enabled': 'true' };
    expect(start({})).toHaveLength(2);
    expect(start({ 'server.node_id': 'n1' })).toEqual([
      'server.role "node" needs internal_grpc.enabled = true: a node serves nothing else',
    ]);
    expect(start({ ...served, 'server.node_id': 'main' })[0]).toMatch(/reserved/);
    expect(start({ ...served, 'server.node_id': 'a/b' })[0]).toMatch(/server.node_id must be/);
    expect(start({ ...served, 'server.node_id': 'n1', 'server.local_node': 'false' })).toEqual([
      'server.role "node" runs agents: remove server.local_node = false',
    ]);
    // It opens no public listener, whatever the address.
    expect(start({ ...served, 'server.node_id': 'n1', 'server.listen': '0.0.0.0:80' })).toEqual([]);
  });
});

describe('paths', () => {
  test('are relative to the file that contains them, or to the working directory', () => {
    const { dir, sources } = place({ 'etc/c.toml': 'data_dir = "data"\nsafe_paths = ["~/work", "../w"]\n' });
    const config = loadConfig({
      ...sources,
      file: 'etc/c.toml',
      flags: flags({ 'logging.output': 'svc.log' }),
    });
    expect(config.get('data_dir')).toBe(join(dir, 'etc/data'));
    expect(config.get('safe_paths')).toEqual([join(dir, 'work'), join(dir, 'w')]);
    expect(config.get('logging.output')).toBe(join(dir, 'svc.log'));
  });

  test('the repository in which the service was started is a repository root', () => {
    const { dir, sources } = place({ 'repo/.git/HEAD': '', 'repo/src/x': '' });
    const config = loadConfig({ ...sources, cwd: join(dir, 'repo/src') });
    expect(config.get('worktree.repo_roots')).toEqual([join(dir, 'repo')]);
  });
});

test('warns of a file with a secret that others can read', () => {
  const { dir, sources } = place({ 'c.toml': 'internal_grpc.auth.shared_secret = "x"' });
  expect(loadConfig({ ...sources, file: 'c.toml' }).warnings).toEqual([]);
  chmodSync(join(dir, 'c.toml'), 0o644);
  expect(loadConfig({ ...sources, file: 'c.toml' }).warnings[0]).toContain('chmod 600');
});

test('warns of open metrics that other machines can reach', () => {
  const { sources } = place();
  const warnings = (env: Record<string, string>) =>
    loadConfig({ ...sources, env: { SVC_METRICS_OPEN: 'true', ...env } }).warnings;
  const warning = (listen: string) => [
    `metrics.open: everyone who can reach ${listen} can read /metrics without a token`,
  ];
  expect(warnings({})).toEqual([]);
  expect(warnings({ SVC_SERVER_LISTEN: '0.0.0.0:80' })).toEqual(warning('0.0.0.0:80'));
  expect(warnings({ SVC_SERVER_BEHIND_PROXY: 'true' })).toEqual(warning('127.0.0.1:8080'));
  expect(warnings({ SVC_SERVER_LISTEN: '0.0.0.0:80', SVC_METRICS_OPEN: 'false' })).toEqual([]);
});

test('the log is text on a terminal, JSON elsewhere and in files', () => {
  const { sources } = place();
  expect(loadConfig({ ...sources, tty: true }).get('logging.format')).toBe('text');
  expect(loadConfig(sources).get('logging.format')).toBe('json');
  expect(loadConfig({ ...sources, tty: true, env: { SVC_LOGGING_OUTPUT: '/l' } }).get('logging.format')).toBe(
    'json',
  );
});

test('every default that is not derived is valid', () => {
  for (const key of configKeyNames) {
    if (configKeys[key].derived === null) {
      expect(checkValue(key, configKeys[key].default), key).toMatchObject({ ok: true });
    }
  }
});

test('the documented choices and bounds are the allowed values', () => {
  const isValid = (key: (typeof configKeyNames)[number], value: unknown) => checkValue(key, value).ok;
  for (const key of configKeyNames) {
    const { kind, choices, range } = configKeys[key];
    for (const choice of choices ?? []) expect(isValid(key, choice), key).toBe(true);
    if (choices !== null) expect(isValid(key, 'other'), key).toBe(false);
    expect(range !== null, key).toBe(kind === 'integer');
    if (range === null) continue;
    const [min, max] = range;
    expect([min - 1, min, max, max + 1].map((value) => isValid(key, value), key)).toEqual([
      false,
      true,
      true,
      false,
    ]);
  }
  const page = configurationPage();
  expect(page).toContain('| `logging.level` | `debug`, `info` |');
  expect(page).toContain('| `database.pool` | integer, 2 to 500 |');
});

test('splits addresses, and recognizes loopback', () => {
  expect(parseAddress('[::1]:0')).toEqual({ host: '::1', port: 0 });
  expect(parseAddress('localhost:80')).toEqual({ host: 'localhost', port: 80 });
  expect(parseAddress('::1:80')).toBeNull();
  expect(parseAddress(':80')).toBeNull();
  expect(isLoopback('127.9.9.9')).toBe(true);
  expect(isLoopback('127.evil.example')).toBe(false);
  expect(isLoopback('::')).toBe(false);
});

test('warns about a plane without agents of its own and without links to nodes', () => {
  const { sources } = place();
  const warnings = (env: Record<string, string>) =>
    loadConfig({ ...sources, env: { SVC_SERVER_LOCAL_NODE: 'false', ...env } }).warnings;
  expect(warnings({})).toEqual([
    'server.local_node = false needs internal_grpc.enabled = true: otherwise no agent can run',
  ]);
  expect(warnings({ SVC_INTERNAL_GRPC_ENABLED: 'true' })).toEqual([]);
});
