/** Checks of `deploy/`: the files parse, name what exists, and contain configurations that svc accepts. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { configKeyNames, envName } from '../../src/core/config.ts';
import { loadConfig, refusals } from '../../src/main/config.ts';
import { root } from './source.ts';

interface Service {
  environment?: Record<string, string>;
  secrets?: (string | { source: string; target: string })[];
  volumes?: string[];
  networks: string[] | { svc: { ipv4_address: string } };
  healthcheck?: { test: string[] };
  depends_on?: string[] | Record<string, unknown>;
  extra_hosts?: string[];
}
interface Compose {
  services: Record<string, Service>;
  secrets: Record<string, { file: string }>;
  volumes: Record<string, null>;
  networks: Record<string, unknown>;
}

const read = (name: string) => readFileSync(join(root, 'deploy', name), 'utf8');
const compose = parse(read('compose.yaml'), { merge: true }) as Compose;
const services = Object.entries(compose.services);
const planes = services.filter(([, { environment }]) => environment?.SVC_CLUSTER_LISTEN !== undefined);
const folder = mkdtempSync(join(tmpdir(), 'svc-deploy-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const secretsOf = ({ secrets = [] }: Service) =>
  secrets.map((secret) => (typeof secret === 'string' ? secret : secret.source));

test('the compose file declares what its services use', () => {
  for (const [name, service] of services) {
    expect(secretsOf(service).filter((secret) => compose.secrets[secret] === undefined)).toEqual([]);
    const dependencies = service.depends_on ?? [];
    const names = Array.isArray(dependencies) ? dependencies : Object.keys(dependencies);
    expect(names.filter((each) => compose.services[each] === undefined)).toEqual([]);
    const networks = Array.isArray(service.networks) ? service.networks : Object.keys(service.networks);
    expect([name, networks]).toEqual([name, ['svc']]);
    for (const volume of service.volumes ?? []) {
      const source = volume.split(':')[0]!;
      const exists = source.startsWith('.')
        ? existsSync(join(root, 'deploy', source))
        : source in compose.volumes;
      expect([volume, exists]).toEqual([volume, true]);
    }
  }
  expect(Object.keys(compose.networks)).toEqual(['svc']);
  const unused = (kind: 'secrets' | 'volumes', used: string[]) =>
    Object.keys(compose[kind]).filter((name) => !used.includes(name));
  expect(
    unused(
      'secrets',
      services.flatMap(([, service]) => secretsOf(service)),
    ),
  ).toEqual([]);
  expect(
    unused(
      'volumes',
      services.flatMap(([, { volumes = [] }]) => volumes.map((each) => each.split(':')[0]!)),
    ),
  ).toEqual([]);
});

test('every variable of the compose file is a setting', () => {
  const known = new Set(configKeyNames.flatMap((key) => [envName(key), `${envName(key)}_FILE`]));
  const used = services.flatMap(([, { environment }]) => Object.keys(environment ?? {}));
  expect(used.filter((name) => name.startsWith('SVC_')).length).toBeGreaterThan(10);
  expect(used.filter((name) => name.startsWith('SVC_') && !known.has(name))).toEqual([]);
});

test('svc accepts the configuration of each service', () => {
  writeFileSync(join(folder, 'database_url'), 'postgres://svc:secret@postgres:5432/svc?sslmode=disable\n');
  writeFileSync(join(folder, 'node_token'), 'token\n');
  for (const [name, { environment = {} }] of services) {
    if (!Object.keys(environment).some((key) => key.startsWith('SVC_'))) continue;
    const env = Object.fromEntries(
      Object.entries(environment).map(([key, value]) => [key, value.replace('/run/secrets', folder)]),
    );
    const config = loadConfig({ env, cwd: folder, home: folder, system_file: join(folder, 'none.toml') });
    expect([name, config.warnings, refusals(config)]).toEqual([name, [], []]);
  }
});

test('the control planes of the compose file share a database and a key, and report whether they are ready', () => {
  expect(planes.map(([name]) => name)).toEqual(['plane-a', 'plane-b']);
  for (const [name, { environment, secrets, healthcheck, volumes }] of planes) {
    expect(environment).toMatchObject({
      SVC_DATABASE_URL_FILE: '/run/secrets/database_url',
      SVC_CLUSTER_NAME: name,
      SVC_CLUSTER_ADVERTISE: `${name}:8090`,
    });
    expect(secrets).toContainEqual({ source: 'secret_key', target: '/data/secret.key' });
    expect(volumes).toEqual([`${name}:/data`]);
    expect(healthcheck?.test.join(' ')).toContain('http://127.0.0.1:8080/readyz');
  }
});

test('nginx finds the control planes of the compose file', () => {
  const upstreams = [...read('nginx.conf').matchAll(/^ +server ([\w-]+):8080 /gm)].map(([, name]) => name);
  expect(upstreams).toEqual(planes.map(([name]) => name));
  const addresses = planes.map(([name, { networks }]) => {
    if (Array.isArray(networks)) throw new Error(`${name} has no address`);
    return `${name}:${networks.svc.ipv4_address}`;
  });
  expect(compose.services.nginx?.extra_hosts).toEqual(addresses);
  const targets = compose.services.nginx?.secrets?.map((secret) => (secret as { target: string }).target);
  const files = [...read('nginx.conf').matchAll(/ssl_certificate\w* +(\S+);/g)].map(([, file]) => file);
  expect(files).toEqual(targets);
});

test('svc accepts the configuration for control planes with systemd', () => {
  const toml = /```toml\n([\s\S]*?)```/.exec(read('README.md'))?.[1] ?? '';
  expect(toml).toContain('[cluster]');
  const file = join(folder, 'config.toml');
  writeFileSync(file, toml, { mode: 0o600 });
  const config = loadConfig({ env: {}, file, cwd: folder, home: folder });
  expect([config.warnings, refusals(config)]).toEqual([[], []]);
});

test('the configuration and the systemd units name the same data directory, so that commands find it too', () => {
  for (const unit of ['svc.service', 'svc-node.service']) {
    expect(read(unit)).toContain('WorkingDirectory=/var/lib/svc\n');
    expect(read(unit)).toContain('Environment=SVC_DATA_DIR=/var/lib/svc\n');
  }
  const readme = read('README.md');
  const inits = readme.split('\n').filter((line) => line.includes('svc init '));
  expect(inits.filter((line) => !line.includes(' --data-dir /var/lib/svc'))).toEqual([]);
  expect(readme).toContain('```toml\ndata_dir = "/var/lib/svc"\n');
});

/** Metrics that svc does not define: those of Prometheus itself and of prom-client. */
const OTHERS = [
  'up',
  'process_start_time_seconds',
  'process_resident_memory_bytes',
  'process_cpu_seconds_total',
];

/** The names in an expression that can be metrics: not functions, labels, label values or keywords. */
function metricsIn(expression: string): string[] {
  const plain = expression
    .replaceAll(/"[^"]*"/g, '')
    .replaceAll(/\{[^}]*\}|\[[^\]]*\]/g, ' ')
    .replaceAll(/\bby \([^)]*\)/g, ' ');
  return [...plain.matchAll(/[a-z]\w*(?!\w| *\()/g)].map(([name]) => name).filter((name) => name !== 'and');
}

function expectKnownMetrics(expressions: string[]): void {
  const reference = readFileSync(join(root, 'docs/reference/metrics.md'), 'utf8');
  const known = new Set([...reference.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name!));
  const unknown = expressions
    .flatMap(metricsIn)
    .filter((name) => !known.has(name.replace(/_bucket$/, '')) && !OTHERS.includes(name));
  expect(unknown).toEqual([]);
}

test('alert rules have unique names, and use metrics that exist', () => {
  const { groups } = parse(read('prometheus-alerts.yml')) as {
    groups: { rules: { alert: string; expr: string; labels: object; annotations: { summary: string } }[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);
  expect(rules.length).toBeGreaterThan(5);
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  for (const { labels, annotations } of rules) {
    expect(labels).toMatchObject({ severity: expect.stringMatching(/^(warning|critical)$/) });
    expect(annotations.summary).toBeTruthy();
  }
  expectKnownMetrics(rules.map(({ expr }) => expr));
  expect(metricsIn('sum by (le) (rate(a_total{b="c"}[5m])) > 2 and d')).toEqual(['a_total', 'd']);
});

test('the dashboard has panels that do not overlap, and uses metrics that exist', () => {
  const { panels, annotations } = JSON.parse(read('grafana-dashboard.json')) as {
    panels: {
      id: number;
      gridPos: { x: number; y: number; w: number; h: number };
      targets: { expr: string }[];
    }[];
    annotations: { list: { expr: string }[] };
  };
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, n) => `${x + (n % w)},${y + Math.floor(n / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const expressions = [...panels.flatMap(({ targets }) => targets), ...annotations.list].map(
    ({ expr }) => expr,
  );
  expectKnownMetrics(expressions);
});
