/** A human member of a team reads the values of the members' variables in records, responses and streams. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Client } from '../../src/client/client.ts';
import { ROOT, TestPlane } from '../../src/testing/plane.ts';

const SECRET = 'sk-alice-secret-0001';
const OTHER = 'sk-alice-secret-0002';

let plane: TestPlane;
let alice: Client;
let bob: Client;
/** Everything that Bob has received so far. */
let received: string;

beforeAll(async () => {
  plane = await TestPlane.open();
  [alice, bob] = (await Promise.all(['alice', 'bob'].map(signUp))) as [Client, Client];
});
beforeEach(() => {
  received = '';
});
afterAll(() => plane.close());

async function signUp(username: string): Promise<Client> {
  const { password } = ROOT;
  await plane.client.call('createUser', { body: { username, password } });
  const { token } = await plane.client.call('login', { body: { username, password } });
  return new Client({ url: plane.url, token });
}

function collect<T>(answer: T): T {
  received += `${JSON.stringify(answer)}\n`;
  return answer;
}

const command = 'printenv API_KEY > "key-$SVC_RUN_ID"; printenv API_KEY';

function specOf(agent: object) {
  const members = [{ member_id: 'dev', agent: { command, workdir: plane.work, ...agent } }];
  return { members, steps: [{ step_key: 'a' }] };
}

let teams = 0;
function makeTeam(idempotency_key?: string) {
  const spec = specOf({ env: { API_KEY: SECRET, REGION: 'eu' } });
  return alice.call('createTeam', {
    body: { name: idempotency_key ?? `site-${++teams}`, human_members: ['bob'], spec },
    ...(idempotency_key !== undefined && { idempotency_key }),
  });
}

/** Runs the team to its end. Returns the value that the agent found in its environment. */
async function keyInRun(team_id: string): Promise<string> {
  const { id: run_id } = collect(await bob.call('createRun', { params: { team_id }, body: {} }));
  await expect.poll(async () => (await bob.call('findRun', { params: { run_id } })).status).toBe('completed');
  collect(await bob.call('findRun', { params: { run_id } }));
  return (await readFile(join(plane.work, `key-${run_id}`), 'utf8')).trim();
}

test('no record, response or stream shows the value of a variable, and agents get it', async () => {
  const stop = new AbortController();
  const changes = bob.follow('followAll', { signal: stop.signal });
  const following = (async () => {
    for await (const frame of changes) collect(frame);
  })();
  const made = collect(await makeTeam('once'));
  collect(await makeTeam('once'));
  const params = { team_id: made.id };
  expect(await keyInRun(made.id)).toBe(SECRET);
  collect(await bob.call('getTeam', { params }));
  collect(await bob.call('listTeams', {}));
  collect(await bob.call('listRuns', { params }));
  collect(await bob.call('updateTeam', { params, body: { description: 'mine', version: 1 } }));
  collect(await plane.client.call('listAudit', {}));
  const listed = await bob.call('listAgents', {});
  const agents = collect('items' in listed ? listed.items : listed);
  collect((await plane.output(agents[0]!.id)).toString());
  stop.abort();
  await following;

  // The stream of changes contained the run, and the audit log was read.
  expect(received).toContain('"event":"run"');
  expect(received).toContain('run_created');
  expect(received).toContain('[redacted:API_KEY]');
  expect(received).not.toContain(SECRET);
  expect(made.spec.members[0]!.agent).toMatchObject({ env_keys: ['API_KEY', 'REGION'] });
});

test('a definition that is saved as it was read keeps its values', async () => {
  const { id: team_id } = await makeTeam();
  const params = { team_id };
  const read = await bob.call('getTeam', { params });
  const spec = { ...read.spec, max_rounds: 3 } as never;
  const saved = await bob.call('updateTeam', { params, body: { spec, version: read.version } });
  expect(saved.spec).toEqual({ ...read.spec, max_rounds: 3 });
  expect(await keyInRun(team_id)).toBe(SECRET);
});

test('a definition that omits a variable removes it, and a new value replaces the old one', async () => {
  const { id: team_id } = await makeTeam();
  const params = { team_id };
  const change = (agent: object, version: number) =>
    bob.call('updateTeam', { params, body: { spec: specOf(agent) as never, version } });
  const replaced = await change({ env_keys: ['API_KEY'], env: { API_KEY: OTHER } }, 1);
  expect(replaced.spec.members[0]!.agent!.env_keys).toEqual(['API_KEY']);
  expect(await keyInRun(team_id)).toBe(OTHER);
  await expect(change({ env_keys: ['API_KEY', 'REGION'] }, 2)).rejects.toThrow(
    'spec.members[].agent.env_keys has no value for REGION: set it in env',
  );
});

test('a restarted run keeps the values that it started with', async () => {
  const { id: team_id } = await makeTeam();
  expect(await keyInRun(team_id)).toBe(SECRET);
  const params = { team_id };
  const spec = specOf({ env: { API_KEY: OTHER } }) as never;
  await bob.call('updateTeam', { params, body: { spec, version: 1 } });
  const listed = await bob.call('listRuns', { params });
  const run = ('items' in listed ? listed.items : listed)[0]!;
  await bob.call('restartRun', { params: { team_id, run_id: run.id } });
  await expect.poll(async () => (await bob.call('findRun', { params: { run_id: run.id } })).attempt).toBe(2);
  await expect
    .poll(async () => (await bob.call('findRun', { params: { run_id: run.id } })).status)
    .toBe('completed');
  expect((await readFile(join(plane.work, `key-${run.id}`), 'utf8')).trim()).toBe(SECRET);
});
