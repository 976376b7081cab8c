/** Messages that are sent, listed and acknowledged: by people over HTTP, and by agents on their machines. */
import { fileURLToPath } from 'node:url';
import { sleep } from '../../src/base/async.ts';
import { Client } from '../../src/client/client.ts';
import type { Run } from '../../src/features/runs/rules/run.ts';
import type { TestAgentNode } from '../../src/testing/agent-node.ts';
import type { TestPlane } from '../../src/testing/plane.ts';
import { atLeast, type Figure, type Row } from '../figure.ts';
import { teamOf } from '../graphs.ts';
import { leanFetch } from '../lean-fetch.ts';
import type { MailerReport } from '../processes/mailer.ts';
import { forEachConcurrently, withNode } from '../program.ts';

const MAILER = fileURLToPath(new URL('../processes/mailer.ts', import.meta.url));
const SENDERS = 16;

export const mail: Row = {
  name: 'mail',
  bottleneck:
    'Over HTTP, a message takes three requests and three commits. Of the service’s processor time for one, ' +
    'half is SQLite in the three transactions and their share of a commit, and a quarter is HTTP. From a ' +
    'node, the processor time is mostly that of the gRPC library: 40 % in the agent, 35 % in the node ' +
    'and 25 % in the plane. The agent is a new process, which also compiles that code. Done ' +
    'so far: reading the run once when a message is acknowledged, and keeping the parsed team, took a message ' +
    'from 2.00 to 1.83 ms of processor time. On a slow machine, it went from 2.4 to 1.9 ms when SQLite no longer ' +
    'prepared statements with a LIMIT again for each call, and to 1.8 ms with events that are inserted one by one.',
  how:
    `${SENDERS} senders at a time. The first figure uses HTTP with keep-alive connections, as root for ` +
    'members that are controlled from outside: each message is sent, found in the inbox and acknowledged, ' +
    'which takes three calls and two to three commits. The client uses `node:http`, because ' +
    '`fetch` takes 0.5 ms more processor time for a message, on the same processors. The other figures are from an agent that is a step of ' +
    'a run and calls as `svc mcp --actor` does, over gRPC on one TLS connection. It ' +
    'sends the messages, then lists as many in its inbox, several at a time, and acknowledges each. One agent ' +
    'is on the plane’s machine, the other on a node that joined over loopback, which forwards its calls.',
  run: async ({ quick }) =>
    withNode(async (plane, node) => {
      const count = quick ? 64 : 512;
      return [
        figure('over HTTP', await overHttp(plane, quick ? 256 : 1_024), 1_000),
        figure('by an agent on the plane’s machine', await byAgent(plane, plane, 'main', count), 300),
        figure('by an agent on a node', await byAgent(plane, node, node.id, count), 300),
      ];
    }),
};

function figure(by: string, value: number, goal: number): Figure {
  return {
    what: `messages sent, listed and acknowledged ${by}`,
    unit: 'messages/s',
    value,
    goal: atLeast(goal),
  };
}

async function overHttp({ url, token }: TestPlane, count: number): Promise<number> {
  const client = new Client({ url, token, fetch: leanFetch() });
  const members = Array.from({ length: SENDERS }, (_, i) => ({ member_id: `m${i}` }));
  const run = await begin(client, 'people', teamOf(members, []));
  const begun_ms = performance.now();
  await forEachConcurrently(members, SENDERS, async ({ member_id: from_actor_id }) => {
    const actor_id = `${from_actor_id}@${run.team_id}`;
    for (let i = 0; i < count / SENDERS; i++) {
      const body = {
        run_id: run.id,
        from_actor_id,
        to_actor_id: from_actor_id,
        payload: { text: `word ${i}` },
      };
      await client.call('sendMail', { body });
      const [first] = await client.call('listMail', { params: { actor_id }, query: { limit: 1 } });
      await client.call('ackMail', { params: { message_id: String(first!.id) } });
    }
  });
  return perSecond(count, begun_ms);
}

/** The rate that the agent measures itself, without its start. Its inbox is filled before. */
async function byAgent(
  { client }: TestPlane,
  home: TestPlane | TestAgentNode,
  node_id: string,
  count: number,
) {
  const argv = [process.execPath, MAILER, String(count), String(SENDERS)];
  const members = [{ member_id: 'm', agent: { argv, workdir: home.work, node_id } }, { member_id: 'filler' }];
  const steps = [
    { step_key: 'fill', member_id: 'filler', depends_on: [] },
    { step_key: 'mail', depends_on: ['fill'] },
  ];
  const { id: run_id, team_id } = await begin(client, node_id, teamOf(members, steps));
  await forEachConcurrently([...Array(count).keys()], SENDERS, async (i) => {
    const body = { run_id, from_actor_id: 'filler', to_actor_id: 'm', payload: { text: `word ${i}` } };
    await client.call('sendMail', { body });
  });
  await client.call('completeStep', { params: { team_id, run_id, step_key: 'fill' }, body: {} });
  for (;;) {
    const { status, output, error } = await client.call('getRun', { params: { team_id, run_id } });
    if (status === 'completed') return (output as { mail: MailerReport }).mail.messages_per_s;
    if (status !== 'running') throw new Error(`the run is ${status}: ${error}`);
    await sleep(50);
  }
}

async function begin(client: Client, name: string, spec: ReturnType<typeof teamOf>): Promise<Run> {
  const { id: team_id } = await client.call('createTeam', { body: { name, spec } });
  return client.call('createRun', { params: { team_id }, body: {} });
}

function perSecond(count: number, begun_ms: number): number {
  return count / ((performance.now() - begun_ms) / 1000);
}
