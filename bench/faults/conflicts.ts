/** Concurrent requests that conflict: one succeeds, and the others get the conflict error of the contract. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from '../../src/client/client.ts';
import type { TestPlane } from '../../src/testing/plane.ts';
import { endProgram, prepareProgram, withProgram } from '../program.ts';
import { counts, type FaultRow, outcomeOf, Tally, upTo } from './row.ts';

export const conflicts: FaultRow = {
  number: 33,
  fault: 'concurrent starts, team updates, steps, names and joins that conflict',
  expected: 'one succeeds, all others get the exact conflict error',
  default_n: 100,
  run: async (n) => {
    const tally = new Tally();
    await joins(tally, n);
    await withProgram(async (plane) => {
      await starts(tally, plane, n);
      await teams(tally, plane, n);
      await keys(tally, plane, n);
    });
    return tally.outcome();
  },
};

function judge(tally: Tally, what: string, outcomes: readonly string[], lost: string): void {
  const won = outcomes.filter((one) => one === 'ok').length;
  tally.check(won === 1, `${what}: ${won} winners`);
  for (const one of outcomes) tally.case(one === 'ok' || one === lost, `${what}: ${one}`);
  tally.measure(`${what}: ${counts(outcomes)}`);
}

async function joins(tally: Tally, n: number): Promise<void> {
  const plane = await prepareProgram({});
  try {
    await plane.start();
    const { token, pin } = JSON.parse(await readFile(join(plane.data_dir, 'join.json'), 'utf8'));
    const body = (i: number) => ({ token, pin, username: `root-${i}`, password: 'quite a long password' });
    const anybody = new Client({ url: plane.url });
    const outcomes = await Promise.all(
      upTo(n).map((i) => outcomeOf(anybody.call('join', { body: body(i) }))),
    );
    judge(tally, 'join', outcomes, 'root already initialized');
  } finally {
    await endProgram(plane);
  }
}

async function starts(tally: Tally, plane: TestPlane, n: number): Promise<void> {
  const { id } = await plane.agent('sleep 1000', { start: false });
  const params = { agent_id: id };
  const outcomes = await Promise.all(
    upTo(n).map(() => outcomeOf(plane.client.call('startAgent', { params }))),
  );
  // A request that arrives while the first start is in progress joins it.
  const known = outcomes.every((one) => one === 'ok' || one === 'agent is already running');
  tally.n += n;
  tally.check(known, `start: ${counts(outcomes)}`);
  const sessions = await plane.client.call('listSessions', { params });
  const made = Array.isArray(sessions) ? sessions.length : sessions.items.length;
  tally.check(made === 1, `start: ${made} sessions of one agent`);
  tally.measure(`start: ${counts(outcomes)}, ${made} session`);
}

async function teams(tally: Tally, plane: TestPlane, n: number): Promise<void> {
  const { client } = plane;
  const spec = { members: [{ member_id: 'm' }], steps: [{ step_key: 'a' }] };
  const named = await Promise.all(
    upTo(n).map(() => outcomeOf(client.call('createTeam', { body: { name: 'one', spec } }))),
  );
  judge(tally, 'team name', named, 'team name already exists');
  const team = await client.call('createTeam', { body: { name: 'two', spec } });
  const params = { team_id: team.id };
  const updated = await Promise.all(
    upTo(n).map((i) =>
      outcomeOf(client.call('updateTeam', { params, body: { version: 1, description: `${i}` } })),
    ),
  );
  judge(tally, 'team update', updated, 'team definition changed concurrently; reload and retry');
  const { version } = await client.call('getTeam', { params });
  tally.check(version === 2, `team update: version ${version} afterwards`);
  const run = await client.call('createRun', { params });
  const about = { ...params, run_id: run.id };
  const added = await Promise.all(
    upTo(n).map(() =>
      outcomeOf(client.call('addStep', { params: about, body: { step_key: 'b', member_id: 'm' } })),
    ),
  );
  judge(tally, 'step', added, 'step already exists for run');
  const begun = await Promise.all(
    upTo(n).map(() => outcomeOf(client.call('startStep', { params: { ...about, step_key: 'a' } }))),
  );
  judge(tally, 'start of a step', begun, 'step is running');
}

async function keys(tally: Tally, plane: TestPlane, n: number): Promise<void> {
  const body = { name: 'keyed', workdir: plane.work, command: 'true' };
  const made = await Promise.all(
    upTo(n).map(() => plane.client.call('createAgent', { body, idempotency_key: 'one-key' })),
  );
  const ids = new Set(made.map(({ id }) => id));
  tally.n += n;
  tally.check(ids.size === 1, `one Idempotency-Key: ${ids.size} agents`);
  const other = { body: { ...body, name: 'other' }, idempotency_key: 'one-key' };
  const refused = await outcomeOf(plane.client.call('createAgent', other));
  tally.case(refused === 'idempotency key reused with a different request', `another body: ${refused}`);
  tally.measure(`one Idempotency-Key: ${ids.size} agent`);
}
