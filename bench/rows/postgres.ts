/** The same service with its data in PostgreSQL, compared with SQLite and with the least that PostgreSQL must do. */
import { silentLog } from '../../src/base/log.ts';
import { openPostgres } from '../../src/store/postgres/postgres.ts';
import { Child } from '../child.ts';
import { type Figure, MB, median, type Row, ratioAtLeast, ratioAtMost } from '../figure.ts';
import type { Shape } from '../graphs.ts';
import { postgresServer } from '../postgres-server.ts';
import type { CopyPathArgs } from '../processes/copy-path.ts';
import { silentAgents, textFile, withFolder, withProgram } from '../program.ts';
import { type Measurement, measure, measureOnSqlite } from './engine.ts';
import { windows } from './latency.ts';
import { oneRun, throughputOf } from './throughput.ts';

export const SERVER =
  'The server is one of the bench, on the same machine and disk, which syncs every commit.';

export const postgresThroughput: Row = {
  name: 'postgres-throughput',
  how:
    `As \`throughput\`, with log text. ${SERVER} The *COPY path* reads the same file, copies it into a table in rows of ` +
    '64 KiB and transactions of the same size, and then sends it unchanged. SQLite, COPY path and PostgreSQL ' +
    'alternate. Median of the runs.',
  run: async ({ quick }) => {
    const server = await postgresServer();
    return withFolder(async (folder) => {
      const file = await textFile(folder, 'log', quick ? 20 * MB : 100 * MB);
      const taken: Record<'sqlite' | 'copy' | 'postgres', number[]> = { sqlite: [], copy: [], postgres: [] };
      for (let run = 0; run < (quick ? 1 : 3); run++) {
        taken.sqlite.push(await withProgram((plane) => oneRun(plane, file)));
        taken.copy.push(await copyPath(file, await server.create()));
        taken.postgres.push(
          await withProgram((plane) => oneRun(plane, file), { SVC_DATABASE_URL: await server.create() }),
        );
      }
      const value = median(taken.postgres);
      const what = 'PostgreSQL: one agent flat out, committed, to one client';
      const common = { unit: 'MB/s', value, goal: ratioAtLeast(0.5) };
      return [
        { what, ...common, limit: median(taken.copy), limit_is: 'COPY path' },
        { what: `${what}, compared with SQLite`, ...common, limit: median(taken.sqlite), limit_is: 'SQLite' },
      ];
    });
  },
};

export const postgresLatency: Row = {
  name: 'postgres-latency',
  how: `As \`latency\` at 1,000 lines/s, first with SQLite and then with PostgreSQL. ${SERVER}`,
  run: async ({ quick }) => {
    const server = await postgresServer();
    const lines_per_s = 1_000;
    const [seconds, rounds] = quick ? [1, 1] : [4, 3];
    const run = (env: Record<string, string>) =>
      withProgram(async (plane) => {
        const agents = await silentAgents(plane, 50);
        const before_s = server.cpuSeconds();
        const latency = await windows(plane, agents, { lines_per_s, seconds, rounds, clients: 50 });
        // One second to warm up comes before the windows.
        const lines = lines_per_s * (seconds * rounds + 1);
        return { ...latency, server_us: ((server.cpuSeconds() - before_s) * 1e6) / lines };
      }, env);
    const sqlite = await run({});
    const postgres = await run({ SVC_DATABASE_URL: await server.create() });
    const what = 'PostgreSQL: line to client, 1,000 lines/s over 50 agents';
    const besides = (value: number, limit: number) => ({ value, limit, limit_is: 'SQLite' });
    return [
      { what: `${what}, p50`, unit: 'ms', ...besides(postgres.p50_ms, sqlite.p50_ms), goal: ratioAtMost(3) },
      { what: `${what}, p99`, unit: 'ms', ...besides(postgres.p99_ms, sqlite.p99_ms) },
      {
        what: `${what}: processor time of the service per line`,
        unit: 'µs',
        ...besides(postgres.cpu_us, sqlite.cpu_us),
      },
      { what: `${what}: processor time of the server per line`, unit: 'µs', value: postgres.server_us },
    ];
  },
};

export const postgresEngine: Row = {
  name: 'postgres-engine',
  how:
    `As \`engine\`, first with SQLite and then with PostgreSQL. ${SERVER} Transactions that run again are those that ` +
    'conflicted with another one, as a share of the commands.',
  run: async ({ quick }) => {
    const count = quick ? 64 : 512;
    return [...(await engineFigures('chain', count)), ...(await engineFigures('fan', count))];
  },
};

async function engineFigures(shape: Shape, count: number): Promise<Figure[]> {
  const sqlite = await measureOnSqlite(shape, count);
  const postgres = await measureOnPostgres(shape, count);
  const what = `PostgreSQL: ${shape} of ${count} steps`;
  const besides = (key: 'wall_ms' | 'cpu_ms') => ({
    value: postgres[key] / count,
    limit: sqlite[key] / count,
    limit_is: 'SQLite',
  });
  return [
    { what: `${what}: time per step`, unit: 'ms', ...besides('wall_ms') },
    { what: `${what}: processor time of the service per step`, unit: 'ms', ...besides('cpu_ms') },
    { what: `${what}: processor time of the server per step`, unit: 'ms', value: postgres.server_ms / count },
    {
      what: `${what}: transactions that run again`,
      unit: '%',
      // Each step takes two commands.
      value: (postgres.conflicts * 100) / (2 * count),
    },
  ];
}

export async function measureOnPostgres(
  shape: Shape,
  count: number,
): Promise<Measurement & { server_ms: number; conflicts: number }> {
  const server = await postgresServer();
  const store = await openPostgres({ url: await server.create(), log: silentLog });
  try {
    const before_s = server.cpuSeconds();
    const measured = await measure(store, shape, count);
    const server_ms = (server.cpuSeconds() - before_s) * 1000;
    return { ...measured, server_ms, conflicts: store.server!.conflicts };
  } finally {
    await store.close();
  }
}

/** The throughput in MB/s of the least that PostgreSQL must do. */
function copyPath(file: string, url: string): Promise<number> {
  return throughputOf(new Child('copy-path', { file, url } satisfies CopyPathArgs));
}
