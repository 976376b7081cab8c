/** A real Prometheus reads the metrics of two planes: every panel of the dashboard has data, and alerts fire. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { TestCluster } from '../src/testing/cluster.ts';
import { openPace } from '../src/testing/pace.ts';
import { freePort } from '../src/testing/plane.ts';
import { postgres_missing } from '../src/testing/postgres-programs.ts';

const deployed = (name: string) => fileURLToPath(new URL(`../deploy/${name}`, import.meta.url));
const prometheus = (process.env.PATH ?? '')
  .split(':')
  .map((folder) => join(folder, 'prometheus'))
  .find(existsSync);
if (prometheus === undefined) console.warn('skipping the test of the dashboard: prometheus is not installed');

/** Shows a value only when a plane has become active. */
const TAKEOVERS = 'changes(process_start_time_seconds{job="$job"}[1m]) > 0';

interface Rule {
  name: string;
  health: string;
  state: 'inactive' | 'pending' | 'firing';
}

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function startPrometheus(target: string, token: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-prometheus-'));
  const settings = join(folder, 'prometheus.yml');
  const listen = `127.0.0.1:${await freePort()}`;
  const scrape = {
    job_name: 'svc',
    authorization: { credentials: token },
    static_configs: [{ targets: [target] }],
  };
  // YAML contains JSON.
  const content = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: [deployed('prometheus-alerts.yml')],
    scrape_configs: [scrape],
  };
  await writeFile(settings, JSON.stringify(content), { mode: 0o600 });
  const child = spawn(
    prometheus!,
    [
      `--config.file=${settings}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${listen}`,
    ],
    { stdio: 'ignore' },
  );
  const ended = once(child, 'exit');
  closing.push(async () => {
    child.kill('SIGKILL');
    await ended;
    await rm(folder, { recursive: true, force: true });
  });
  return `http://${listen}/api/v1`;
}

/** What Prometheus answers, once a condition holds; `read` is repeated until then. */
async function until<T>(read: () => Promise<T>, condition: (value: T) => boolean): Promise<T> {
  for (const pace = openPace(); ; await pace()) {
    const value = await read().catch(() => undefined);
    if (value !== undefined && condition(value)) return value;
  }
}

async function expressions(): Promise<string[]> {
  const found: string[] = [];
  JSON.parse(await readFile(deployed('grafana-dashboard.json'), 'utf8'), (key, value) => {
    if (key === 'expr') found.push(value);
    return value;
  });
  return found;
}

test.skipIf(postgres_missing || prometheus === undefined)(
  'every panel of the dashboard has data, and alerts begin when planes are killed',
  { timeout: 240_000 },
  async () => {
    const cluster = await TestCluster.open(['a', 'b']);
    closing.push(() => cluster.close());
    const [a, b] = cluster.planes;
    const body = { name: 'prometheus', scopes: ['metrics' as const] };
    const { token } = await a!.client.call('createToken', { body });
    const conversation = await cluster.startAsker(b!);
    closing.push(() => conversation.close());
    const [review] = await conversation.pending();
    await conversation.respond(review!.id, { decision: 'allow' });
    await conversation.untilIdle();

    const api = await startPrometheus(new URL(b!.url).host, token);
    const ask = async <T>(path: string) =>
      (await (await fetch(`${api}/${path}`)).json()) as { status: string; error?: string; data: T };
    const query = (expression: string) => {
      const filled = expression.replaceAll('$job', 'svc').replaceAll('$__rate_interval', '30s');
      return ask<{ result: unknown[] }>(`query?${new URLSearchParams({ query: filled })}`);
    };
    const rules = async () =>
      (await ask<{ groups: { rules: Rule[] }[] }>('rules')).data.groups.flatMap((group) => group.rules);

    const panels = await expressions();
    expect(panels.length).toBeGreaterThan(15);
    for (const expression of panels) {
      if (expression === TAKEOVERS) continue;
      await until(
        () => query(expression),
        ({ status, error, data }) => {
          expect(status, `${expression}: ${error}`).toBe('success');
          return data.result.length > 0;
        },
      );
    }
    const evaluated = await until(rules, (all) => all.every(({ health }) => health !== 'unknown'));
    expect(evaluated.filter(({ health, state }) => health !== 'ok' || state !== 'inactive')).toEqual([]);

    const stateOf = (all: Rule[], name: string) => all.find((rule) => rule.name === name)?.state;
    await a!.kill('SIGKILL');
    await until(rules, (all) => stateOf(all, 'SvcNoStandby') !== 'inactive');
    await until(
      () => query(TAKEOVERS),
      ({ data }) => data.result.length > 0,
    );
    await b!.kill('SIGKILL');
    await until(rules, (all) => stateOf(all, 'SvcUnavailable') !== 'inactive');
  },
);
