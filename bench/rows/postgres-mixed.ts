/** How often transactions on PostgreSQL run again while people, agents and runs do everything at the same time. */
import { fileURLToPath } from 'node:url';
import { sleep } from '../../src/base/async.ts';
import { Client } from '../../src/client/client.ts';
import type { Run } from '../../src/features/runs/rules/run.ts';
import type { TestPlane } from '../../src/testing/plane.ts';
import { atMost, type Row } from '../figure.ts';
import { graph, teamOf } from '../graphs.ts';
import { leanFetch } from '../lean-fetch.ts';
import { postgresServer } from '../postgres-server.ts';
import { forEachConcurrently, withProgram } from '../program.ts';

const ACP_AGENT = fileURLToPath(new URL('../../src/testing/acp-agent.ts', import.meta.url));
const TEAMS = 4;
/** Steps that a person completes, besides as many messages. */
const COMMANDED_STEPS = 24;
/** Steps whose agents print. */
const PRINTING_STEPS = 4;
const LINES = 200;
/** Commands and messages of one run at once. */
const AT_ONCE = 4;

export const postgresMixed: Row = {
  name: 'postgres-mixed',
  how:
    `${TEAMS} teams at once, each with one run after the other. In a run, people complete ${COMMANDED_STEPS} steps, ` +
    `${AT_ONCE} at a time, and meanwhile send, list and acknowledge as many messages; ${PRINTING_STEPS} more steps are ` +
    `agents that print ${LINES} lines each. Beside each run, an agent asks for permission in each of its turns and is ` +
    'answered, and a client reads agents, runs and steps without a pause. Transactions that run again are those that ' +
    'conflicted with another one, as a share of all that change rows, without batches of output.',
  run: async ({ quick }) => {
    const server = await postgresServer();
    return withProgram(
      async (plane) => {
        const before = await counters(plane);
        const begun_ms = performance.now();
        const teams = Array.from({ length: TEAMS }, (_, i) => i);
        await Promise.all(teams.map((i) => work(plane, `team ${i}`, quick ? 1 : 5)));
        const seconds = (performance.now() - begun_ms) / 1000;
        const after = await counters(plane);
        const writes = after.writes - before.writes;
        const share = ((after.conflicts - before.conflicts) * 100) / writes;
        const what = `PostgreSQL: ${TEAMS} teams with steps, mail, reviews, output and reads`;
        return [
          { what: `${what}: transactions that run again`, unit: '%', value: share, goal: atMost(2) },
          { what: `${what}: transactions that change rows`, unit: 'per s', value: writes / seconds },
        ];
      },
      { SVC_DATABASE_URL: await server.create() },
    );
  },
};

async function work(plane: TestPlane, name: string, runs: number): Promise<void> {
  const client = new Client({ url: plane.url, token: plane.token, fetch: leanFetch() });
  const team_id = await createTeam(client, plane, name);
  for (let i = 0; i < runs; i++) {
    const run = await client.call('createRun', { params: { team_id }, body: {} });
    let over = false;
    const reading = (async () => {
      while (!over) await read(client, run);
    })();
    await Promise.all([
      commandSteps(client, run),
      exchangeMail(client, run),
      answerReviews(client, plane, 2),
    ]);
    await untilCompleted(client, run);
    over = true;
    await reading;
  }
}

async function createTeam(client: Client, plane: TestPlane, name: string): Promise<string> {
  const print = `i=0; while [ $i -lt ${LINES} ]; do i=$((i+1)); echo "line $i"; done`;
  const printer = { argv: ['/bin/sh', '-c', print], workdir: plane.work };
  const members = [
    { member_id: 'person' },
    { member_id: 'reader' },
    { member_id: 'printer', agent: printer },
  ];
  const printing = Array.from({ length: PRINTING_STEPS }, (_, i) => ({
    step_key: `print${i}`,
    depends_on: [],
    member_id: 'printer',
  }));
  const steps = graph('fan', COMMANDED_STEPS).map((step) => ({ ...step, member_id: 'person' }));
  const spec = teamOf(members, [...steps, ...printing]);
  return (await client.call('createTeam', { body: { name, spec } })).id;
}

async function commandSteps(client: Client, { id: run_id, team_id }: Run): Promise<void> {
  const complete = async ({ step_key }: { step_key: string }) => {
    const params = { team_id, run_id, step_key };
    await client.call('startStep', { params });
    await client.call('completeStep', { params, body: {} });
  };
  const [first, ...rest] = graph('fan', COMMANDED_STEPS);
  const last = rest.pop()!;
  await complete(first!);
  await forEachConcurrently(rest, AT_ONCE, complete);
  await complete(last);
}

async function exchangeMail(client: Client, { id: run_id, team_id }: Run): Promise<void> {
  const actor_id = `reader@${team_id}`;
  await forEachConcurrently([...Array(COMMANDED_STEPS).keys()], AT_ONCE, async (i) => {
    const body = { run_id, from_actor_id: 'person', to_actor_id: 'reader', payload: { text: `word ${i}` } };
    const { id } = await client.call('sendMail', { body });
    await client.call('listMail', { params: { actor_id }, query: { limit: 1 } });
    await client.call('ackMail', { params: { message_id: String(id) } });
  });
}

async function answerReviews(client: Client, plane: TestPlane, count: number): Promise<void> {
  const argv = [process.execPath, ACP_AGENT, 'permission'];
  const { id: agent_id } = await plane.agent(argv, { protocol: 'acp' });
  for (let i = 0; i < count; i++) {
    await client.call('promptAgent', { params: { agent_id }, body: { text: 'may you' } });
    for (;;) {
      const found = await client.call('listReviews', { query: { status: 'pending', agent_id } });
      const [review] = Array.isArray(found) ? found : found.items;
      if (review) {
        const params = { review_id: review.id };
        await client.call('respondReview', { params, body: { decision: 'allow' } });
        break;
      }
      await sleep(20);
    }
  }
  await client.call('stopAgent', { params: { agent_id }, body: {} });
}

async function read(client: Client, { id: run_id, team_id }: Run): Promise<void> {
  await client.call('listAgents', {});
  await client.call('getRun', { params: { team_id, run_id } });
  await client.call('listSteps', { params: { team_id, run_id } });
}

async function untilCompleted(client: Client, { id: run_id, team_id }: Run): Promise<void> {
  for (;;) {
    const { status, error } = await client.call('getRun', { params: { team_id, run_id } });
    if (status === 'completed') return;
    if (status !== 'running') throw new Error(`the run is ${status}: ${error}`);
    await sleep(50);
  }
}

async function counters({ url, token }: TestPlane): Promise<{ writes: number; conflicts: number }> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
  const text = await response.text();
  const value = (name: string) =>
    Number(new RegExp(`^svc_postgresql_${name}_total (\\d+)$`, 'm').exec(text)![1]);
  return { writes: value('writes'), conflicts: value('conflicts') };
}
