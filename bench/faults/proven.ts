/** Rows that end-to-end tests prove: they are repeated here, or only counted. */
import { type FaultRow, Tally } from './row.ts';
import { runTests } from './tests.ts';

export const kills = randomRow({
  number: 34,
  fault: 'a plane that is killed while it executes runs, at random times and at each commit',
  expected: 'no step is lost, and no attempt exists twice',
  default_n: 20,
  test: 'team-kills',
});

export const takeovers = randomRow({
  number: 50,
  fault:
    'three planes that share a database, and three nodes: kill -9, SIGTERM and SIGSTOP of planes, planes cut off from PostgreSQL, restarts of PostgreSQL, connections lost, also in COMMIT, commits and answers to them lost, and kill -9 of nodes, at random',
  expected: 'no byte, approval or step is lost or repeated, whichever plane a client uses',
  default_n: 300,
  test: 'cluster-kills',
});

export const disturbances = longRow({
  number: 51,
  fault:
    'planes that share a database: the active one suspended for a minute, clocks an hour ahead and behind, and takeovers during pg_dump, and during a long serializable transaction and locks of another client',
  expected: 'no byte or approval is lost or repeated, and a plane that was replaced changes nothing',
  test: 'cluster-faults',
});

export const partitions = longRow({
  number: 52,
  fault: 'planes that share a database: the network drops all packets of the active one, of both in turn',
  expected: 'the other one takes over in time, and the one that was cut off is refused afterwards',
  test: 'cluster-network',
});

export const fullDatabase = longRow({
  number: 53,
  fault: 'no space for the tables of PostgreSQL, then for its write-ahead log',
  expected: 'the plane says so, agents keep running, and nothing is lost once there is space',
  test: 'postgresql-disk',
});

export const upgrades = longRow({
  number: 54,
  fault:
    'two planes that share a database, and a node: each is replaced by the next version, which has another schema, while the others still have this one',
  expected: 'no byte or approval is lost or repeated, and planes of both versions serve all requests',
  test: 'cluster-upgrade',
});

export const promotions = testedRow({
  number: 55,
  fault:
    'the primary of PostgreSQL ends for good, and a synchronous or a lagging asynchronous standby is promoted',
  expected:
    'with the synchronous one, nothing is lost or repeated; with the other one, each log says what is missing, and no number is used twice',
  files: ['test/postgresql-failover.test.ts', 'src/store/postgres/failover.test.ts'],
});

export const poolers = testedRow({
  number: 56,
  fault: 'PgBouncer between svc and PostgreSQL, with a pool by transaction or by session',
  expected: 'refused when svc starts, with one sentence that says what to do',
  files: ['src/store/postgres/pooler.test.ts'],
});

/** The test keeps everything that each client has received; more than an hour of it is too much for the default heap. */
const HISTORIES = '--max-old-space-size=8192';

/** A row that a file of tests proves with `n` faults at random moments. */
function randomRow({ test, ...row }: Omit<FaultRow, 'run'> & { test: string }): FaultRow {
  const run = async (n: number, seed: number) => {
    const tally = new Tally();
    await runLongTest(tally, test, {
      SVC_TEST_KILLS: String(n),
      SVC_TEST_SEED: String(seed),
      NODE_OPTIONS: HISTORIES,
    });
    tally.n = n;
    return tally.outcome();
  };
  return { ...row, run };
}

/** A row that a file of tests proves. */
function longRow({
  test,
  ...row
}: Pick<FaultRow, 'number' | 'fault' | 'expected'> & { test: string }): FaultRow {
  const run = async () => {
    const tally = new Tally();
    await runLongTest(tally, test);
    return tally.outcome();
  };
  return { ...row, default_n: 1, run };
}

/** A row that tests of `npm test` prove. */
function testedRow({
  files,
  ...row
}: Pick<FaultRow, 'number' | 'fault' | 'expected'> & { files: readonly string[] }): FaultRow {
  const run = async () => {
    const tally = new Tally();
    await runTests(tally, files);
    return tally.outcome();
  };
  return { ...row, default_n: 1, run };
}

async function runLongTest(tally: Tally, name: string, env: Record<string, string> = {}): Promise<void> {
  await runTests(tally, [`test/${name}.test.ts`], { project: 'long', env });
}

export const access: FaultRow = {
  number: 46,
  fault: 'every route by every role, on the user’s own and other users’ resources, at every entry point',
  expected: '403 or 404, as in the contract',
  default_n: 1,
  run: async () => {
    const tally = new Tally();
    const entries = ['http', 'actor', 'node'].map((entry) => `test/access-${entry}.test.ts`);
    await runTests(tally, [
      ...entries,
      'src/core/policy.test.ts',
      'src/features/actors/rules/rights.test.ts',
    ]);
    await runTests(tally, ['test/contract.test.ts'], { name_parts: ['another user'] });
    return tally.outcome();
  },
};

export const escapes = testedRow({
  number: 48,
  fault: 'terminal sequences, OSC 52, HTML and line endings in names and output',
  expected: 'harmless in the web UI, on a terminal and in the log',
  files: [
    'src/cli/terminal.test.ts',
    'src/features/conversations/commands/transcript.test.ts',
    'src/web/transcript/ansi.test.ts',
    'src/web/transcript/escape.test.ts',
    'src/features/agents/http/log.test.ts',
    'src/base/log.test.ts',
    'test/web-output.test.ts',
  ],
});
