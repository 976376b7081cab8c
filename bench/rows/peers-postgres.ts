/** Steps of runs, compared with workflows of DBOS and jobs of pg-boss in the same PostgreSQL server. */
import { limits as runsLimits } from '../../src/features/runs/limits.ts';
import { Child } from '../child.ts';
import { type Figure, median, type Row, ratioAtLeast } from '../figure.ts';
import { type Shape, shapes } from '../graphs.ts';
import { installPeer, type Peer, peers } from '../peers/install.ts';
import { postgresServer } from '../postgres-server.ts';
import type { Elapsed } from '../processes/clock.ts';
import type { PeerArgs, PeerClose, PeerOpen, PeerRun } from '../processes/serve-peer.ts';
import { measureOnPostgres, SERVER } from './postgres.ts';

/** Steps of the runs that come before the measured ones, and compile the code. */
const WARM_UP = 64;

export const postgresPeers: Row = {
  name: 'postgres-peers',
  how:
    `Steps that do nothing, each run with an empty database. ${SERVER} The three programs alternate, each in a process ` +
    'that has run 64 steps before; the figures are medians. Nobody starts an agent. The work is not the same. svc stores ' +
    'the graph when the run is created, which counts here. As in `engine`, a step is two commands, `start` and ' +
    '`complete`, each a transaction with the change of the step, its place in the history, the steps that it makes ' +
    'ready, and events for the clients that follow; anyone who may control the member can give them. DBOS ' +
    `(\`@dbos-inc/dbos-sdk\` ${peers['@dbos-inc/dbos-sdk']}) runs a function: its process decides which step is next and ` +
    'inserts one row when a step is done; a step of another process would be a *child workflow*, which has rows of its ' +
    'own. Both are figures here, and in both all parallel steps start together, limited by the ten connections of ' +
    `DBOS. pg-boss ${peers['pg-boss']} is a queue: a job is inserted, fetched and completed by one of ` +
    `${runsLimits.run_plain_steps_max} loops that call its \`fetch\` and \`complete\`. Its own dependencies between jobs are ` +
    'resolved at an interval of seconds, and its `work` pauses for at least half a second after each job, so neither ' +
    'is used: in a chain, the program sends each job when the one before it is complete, and a crash in between would ' +
    'end the chain. It stores no graph and no history, so its figures have no goal. Processor time is that ' +
    'of the process that runs the steps, and of all processes of the server.',
  bottleneck:
    'A step is two serializable transactions with the graph, the history and the events of its run, where DBOS inserts one ' +
    'row; the transactions of a fan also wait for each other, because they change the same run. Tried: any number of ' +
    'transactions at once, of which up to 90 % ran again. Done so far: a step of a chain is 24 statements instead of 46, and ' +
    'svc waits for 7 of them; measured in turns beside other work, that took its processor time from 5.7 to 3.5 ms in svc, ' +
    'and from 4.2 to 2.3 ms in the server.',
  run: async ({ quick }) => {
    const systems = await openSystems();
    const count = quick ? 64 : 512;
    for (const { name, run } of systems) for (const graph of graphsOf(name)) await run(graph, WARM_UP);
    const results = new Map<string, Measured[]>();
    for (let round = 0; round < (quick ? 1 : 3); round++)
      for (const graph of ['chain', 'fan', 'children'] as const)
        for (const { name, run } of systems)
          if (graphsOf(name).includes(graph)) {
            const key = `${name} ${graph}`;
            results.set(key, [...(results.get(key) ?? []), await run(graph, count)]);
          }
    return shapes.flatMap((shape) => figuresOf(shape, count, (key) => results.get(key)!));
  },
};

type Graph = PeerRun['graph'];
type Name = 'svc' | 'DBOS' | 'pg-boss';

interface Measured extends Elapsed {
  server_ms: number;
}

interface System {
  name: Name;
  /** Runs the steps in an empty database. */
  run(graph: Graph, count: number): Promise<Measured>;
}

function graphsOf(name: Name): readonly Graph[] {
  return name === 'DBOS' ? [...shapes, 'children'] : shapes;
}

async function openSystems(): Promise<System[]> {
  const svc: System = {
    name: 'svc',
    async run(graph, count) {
      if (graph === 'children') throw new Error('svc has no child workflows');
      const { wall_ms, cpu_ms, creation, server_ms } = await measureOnPostgres(graph, count);
      return { wall_ms: wall_ms + creation.wall_ms, cpu_ms: cpu_ms + creation.cpu_ms, server_ms };
    },
  };
  return [
    svc,
    await openPeer('DBOS', 'dbos', '@dbos-inc/dbos-sdk'),
    await openPeer('pg-boss', 'pg-boss', 'pg-boss'),
  ];
}

async function openPeer(name: Name, program: string, installed: Peer): Promise<System> {
  const child = new Child(program, { package: await installPeer(installed) } satisfies PeerArgs);
  return {
    name,
    async run(graph, count) {
      const server = await postgresServer();
      await child.request({ kind: 'open', url: await server.create() } satisfies PeerOpen);
      const before_s = server.cpuSeconds();
      const at_once = runsLimits.run_plain_steps_max;
      const elapsed = await child.request<Elapsed>({ kind: 'run', graph, count, at_once } satisfies PeerRun);
      const server_ms = (server.cpuSeconds() - before_s) * 1000;
      await child.request({ kind: 'close' } satisfies PeerClose);
      return { ...elapsed, server_ms };
    },
  };
}

function figuresOf(shape: Shape, count: number, results: (key: string) => readonly Measured[]): Figure[] {
  const besides = [
    { key: `DBOS ${shape}`, limit_is: 'DBOS', goal: ratioAtLeast(1) },
    ...(shape === 'fan'
      ? [{ key: 'DBOS children', limit_is: 'DBOS, child workflows', goal: ratioAtLeast(1) }]
      : []),
    { key: `pg-boss ${shape}`, limit_is: 'pg-boss' },
  ];
  const what = `PostgreSQL: ${shape} of ${count} steps that do nothing`;
  return besides.flatMap(({ key, limit_is, goal }) => {
    const both = (of: (one: Measured) => number) => ({
      value: median(results(`svc ${shape}`).map(of)),
      limit: median(results(key).map(of)),
      limit_is,
    });
    return [
      {
        what,
        unit: 'steps/s',
        ...both(({ wall_ms }) => (count * 1000) / wall_ms),
        ...(goal && { goal }),
      },
      { what: `${what}: processor time per step`, unit: 'ms', ...both(({ cpu_ms }) => cpu_ms / count) },
      {
        what: `${what}: processor time of the server per step`,
        unit: 'ms',
        ...both(({ server_ms }) => server_ms / count),
      },
    ];
  });
}
