/** Teams and runs over HTTP, with members without agents: validation and its messages, permissions, and event streams. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Client, Frame } from '../src/client/client.ts';
import { Client as HttpClient } from '../src/client/client.ts';
import type { Run } from '../src/features/runs/rules/run.ts';
import { TestPlane } from '../src/testing/plane.ts';

const PASSWORD = 'correct horse battery';
let plane: TestPlane;
let root: Client;
let ada: Client;
let bob: Client;
let eve: Client;

beforeAll(async () => {
  plane = await TestPlane.open();
  root = plane.client;
  [ada, bob, eve] = (await Promise.all(
    ['ada', 'bob', 'eve'].map(async (username) => {
      await root.call('createUser', { body: { username, password: PASSWORD, role: 'user' } });
      const { token } = await root.call('login', { body: { username, password: PASSWORD } });
      return new HttpClient({ url: plane.url, token });
    }),
  )) as [Client, Client, Client];
});
afterAll(() => plane.close());

/** `<status> <message>` of a request; only the status if it succeeded. */
async function answer(method: string, path: string, body?: unknown, headers = {}): Promise<string> {
  const response = await fetch(`${plane.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${plane.token}`, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return response.ok ? `${response.status}` : `${response.status} ${JSON.parse(text).error}`;
}

const outcome = (promise: Promise<unknown>) =>
  promise.then(
    () => 'ok',
    (error: Error) => error.message,
  );

let made = 0;
const member = { member_id: 'm' };
const unnamed = () => `team ${++made}`;

async function begin(steps: { step_key: string; depends_on?: string[]; when?: 'always' }[], client = root) {
  const spec = { members: [member, { member_id: 'lead' }], leader_member_id: 'lead', steps };
  const team = await client.call('createTeam', { body: { name: unnamed(), spec } });
  const run = await client.call('createRun', { params: { team_id: team.id }, body: { input: { n: 1 } } });
  return { team, run, at: { team_id: team.id, run_id: run.id } };
}

describe('a definition', () => {
  const members = [member];
  const steps = (...all: object[]) => ({ members, steps: all });
  const s = (step_key: string, ...depends_on: unknown[]) => ({ step_key, depends_on });
  test.each<[string, unknown, string]>([
    ['an array as its spec', [], 'spec must be an object'],
    ['no spec', undefined, 'spec must be an object'],
    ['an unsupported version', { spec_version: 2, members }, 'spec.spec_version is not supported'],
    [
      'an unsupported entrypoint',
      { entrypoint: { type: 'cron' }, members },
      'spec.entrypoint.type is not supported',
    ],
    ['no members', {}, 'spec.members must be an array'],
    ['members in an object', { members: {} }, 'spec.members must be an array'],
    ['an empty list of members', { members: [] }, 'spec.members must not be empty'],
    ['a member without an id', { members: [{}] }, 'spec.members[].member_id is required'],
    ['a member with an empty id', { members: [{ member_id: '' }] }, 'spec.members[].member_id is required'],
    [
      'two members with the same id',
      { members: [member, member] },
      'spec.members[].member_id must be unique',
    ],
    [
      'a member called user',
      { members: [{ member_id: 'user' }] },
      'spec.members[].member_id must not be user',
    ],
    ...['.', '..'].map((member_id): [string, unknown, string] => [
      `a member called ${member_id}`,
      { members: [{ member_id }] },
      'spec.members[].member_id must be 1 to 64 characters from A-Z, a-z, 0-9, ".", "_" and "-", but not "." or ".."',
    ]),
    [
      'a restart policy for a member',
      { members: [{ member_id: 'm', agent: { command: 'true', restart_policy: 'on_failure' } }] },
      'spec.members[].agent.restart_policy is not allowed for members of teams',
    ],
    [
      'an agent without a command',
      { members: [{ member_id: 'm', agent: {} }] },
      'spec.members[].agent needs command, argv or a preset that runs one',
    ],
    [
      'a leader that is not a member',
      { members, leader_member_id: 'x' },
      'spec.leader_member_id must reference a defined member',
    ],
    ['steps in an object', { members, steps: {} }, 'spec.steps must be an array'],
    ['a step without a key', steps({}), 'step_key is required'],
    ['two steps with the same key', steps(s('a'), s('a')), 'spec.steps[].step_key must be unique'],
    ['an empty dependency', steps(s('a', '')), 'spec.steps[].depends_on entries must be non-empty strings'],
    [
      'a dependency that is not a string',
      steps(s('a', 1)),
      'spec.steps[].depends_on entries must be non-empty strings',
    ],
    ['an unknown dependency', steps(s('a', 'b')), 'spec.steps[].depends_on must reference a defined step'],
    ['a dependency cycle', steps(s('a', 'b'), s('b', 'a')), 'spec.steps must not contain a dependency cycle'],
    ['a step that depends on itself', steps(s('a', 'a')), 'spec.steps must not contain a dependency cycle'],
    [
      'a step for an unknown member',
      steps({ step_key: 'a', member_id: 'x' }),
      'spec.steps[].member_id must reference a defined member',
    ],
    [
      'too many steps',
      steps(...Array.from({ length: 2_049 }, (_, i) => s(`${i}`))),
      'spec.steps must have at most 2048 entries',
    ],
    [
      'too many members',
      { members: Array.from({ length: 101 }, (_, i) => ({ member_id: `${i}` })) },
      'spec.members must have at most 100 entries',
    ],
  ])('with %s is refused', async (_what, spec, message) => {
    expect(await answer('POST', '/api/teams', { name: 'x', spec })).toBe(`400 ${message}`);
  });

  test('with several errors reports the error in the name first', async () => {
    for (const name of [undefined, '', ' '])
      expect(await answer('POST', '/api/teams', { name, spec: [] })).toBe('400 team name is required');
  });

  test('is returned with all defaults', async () => {
    const { team } = await begin([{ step_key: 'a' }]);
    expect(team).toMatchObject({ version: 1, description: '', human_members: [] });
    expect(team.spec).toMatchObject({ spec_version: 1, entrypoint: { type: 'task' }, max_rounds: 20 });
    expect(team.spec.steps[0]).toEqual({
      ...{ step_key: 'a', member_id: 'lead', depends_on: [], when: 'on_success', prompt: '', input: null },
      ...{ timeout_seconds: null, max_attempts: 1 },
    });
  });
});

describe('a team', () => {
  test('has a unique name', async () => {
    const { team } = await begin([]);
    const body = { name: team.name, spec: { members: [member] } };
    expect(await answer('POST', '/api/teams', body)).toBe('409 team name already exists');
  });

  test('has a unique key, which the names of its tasks begin with', async () => {
    const [name, spec] = [unnamed(), { members: [member] }];
    const create = (key: string) => answer('POST', '/api/teams', { name: unnamed(), spec, key });
    const team = await root.call('createTeam', { body: { name, spec, key: 'WEB' } });
    const params = { team_id: team.id };
    const task = await root.call('createTask', { params, body: { title: 'a' } });
    expect(task.key).toBe('WEB-1');
    expect(await create('WEB')).toBe('409 team key already exists');
    expect(await create('web')).toBe('400 key must be 2 to 5 uppercase letters');
    const other = await root.call('createTeam', { body: { name: unnamed(), spec } });
    expect(other.key).toMatch(/^TEA/);
    const change = (key: string) => root.call('updateTeam', { params, body: { key, version: team.version } });
    await expect(change(other.key)).rejects.toThrow('team key already exists');
    expect(await change('SITE')).toMatchObject({ key: 'SITE', name });
    expect(await root.call('listTasks', { params })).toMatchObject([{ key: 'SITE-1' }]);
  });

  test('rejects a change based on an old version', async () => {
    const { team } = await begin([]);
    const path = `/api/teams/${team.id}`;
    expect(await answer('PUT', path, { description: 'x' })).toBe('400 version is required');
    const changes = ['a', 'b', 'c', 'd'].map((description) =>
      answer('PUT', path, { description }, { 'if-match': '"1"' }),
    );
    const lost = '409 team definition changed concurrently; reload and retry';
    expect((await Promise.all(changes)).toSorted()).toEqual(['200', lost, lost, lost]);
    expect(await answer('PUT', path, { description: 'e', version: 2 })).toBe('200');
    expect((await root.call('getTeam', { params: { team_id: team.id } })).version).toBe(3);
  });

  test('cannot be deleted during a run, and a run keeps the definition that it started with', async () => {
    const { team, run, at } = await begin([{ step_key: 'a' }]);
    expect(await answer('DELETE', `/api/teams/${team.id}`)).toBe('409 team has active runs');
    const spec = { members: [{ member_id: 'other' }] };
    await root.call('updateTeam', { params: { team_id: team.id }, body: { version: 1, spec } });
    await root.call('completeStep', { params: { ...at, step_key: 'a' }, body: { output: 7 } });
    const after = (await root.call('getRun', { params: at })) as Run;
    expect(after).toMatchObject({ status: 'completed', spec: run.spec, output: { a: 7 } });
    expect(await answer('DELETE', `/api/teams/${team.id}`)).toBe('204');
    expect(await answer('GET', `/api/teams/${team.id}`)).toBe('404 team not found');
    expect(await answer('GET', `/api/teams/runs/${run.id}`)).toBe('404 run not found');
  });

  test('is accessible to its creator, its human members and root, and can be deleted only by the creator and root', async () => {
    const { team, run, at } = await begin([{ step_key: 'a' }], ada);
    const params = { team_id: team.id };
    expect(await outcome(bob.call('getTeam', { params }))).toBe('team not found');
    const body = { version: 1, human_members: ['bob'] };
    expect((await ada.call('updateTeam', { params, body })).human_members).toEqual(['bob']);
    const may = async (client: Client) => [
      await outcome(client.call('getTeam', { params })),
      await outcome(client.call('getRun', { params: at })),
      await outcome(client.call('findRun', { params: { run_id: run.id } })),
      await outcome(
        client.call('requireStepInput', { params: { ...at, step_key: 'a' }, body: { reason: 'r' } }),
      ),
      await outcome(client.call('resumeStep', { params: { ...at, step_key: 'a' }, body: {} })),
    ];
    expect(await may(bob)).toEqual(['ok', 'ok', 'ok', 'ok', 'ok']);
    const hidden = ['team not found', 'team not found', 'run not found', 'team not found', 'team not found'];
    expect(await may(eve)).toEqual(hidden);
    expect(await outcome(bob.call('deleteTeam', { params }))).toBe('not allowed');
    expect(await outcome(eve.call('deleteTeam', { params }))).toBe('team not found');
    const listed = async (client: Client) =>
      ((await client.call('listTeams', {})) as { id: string }[]).some(({ id }) => id === team.id);
    expect(await Promise.all([root, ada, bob, eve].map(listed))).toEqual([true, true, true, false]);
    const { user } = await root.call('login', { body: { username: 'ada', password: PASSWORD } });
    expect(await answer('DELETE', `/api/admin/users/${user.id}`)).toBe('409 user has teams');
    await root.call('cancelRun', { params: at });
    expect(await outcome(ada.call('deleteTeam', { params }))).toBe('ok');
  });
});

describe('a run', () => {
  test('rejects unknown ids and invalid fields with a message that names them', async () => {
    const { team, run } = await begin([{ step_key: 'a' }]);
    const path = `/api/teams/${team.id}/runs/${run.id}`;
    expect(await answer('POST', '/api/teams/team_x/runs', {})).toBe('404 team not found');
    expect(await answer('GET', `/api/teams/${team.id}/runs/run_x`)).toBe('404 run not found');
    expect(await answer('POST', `${path}/steps/x/start`)).toBe('404 step not found');
    expect(await answer('POST', `/api/teams/${team.id}/runs`, { input: [] })).toBe(
      '400 input must be an object',
    );
    expect(await answer('POST', `${path}/steps`, {})).toBe('400 step_key is required');
    expect(await answer('POST', `${path}/steps`, { step_key: 'b' })).toBe('400 member_id is required');
    const add = (step: object) => answer('POST', `${path}/steps`, { member_id: 'm', ...step });
    expect(await add({ step_key: 'a' })).toBe('409 step already exists for run');
    expect(await add({ step_key: 'b', member_id: 'x' })).toBe(
      '400 member_id must reference a defined member',
    );
    expect(await add({ step_key: 'b', depends_on: ['x'] })).toBe(
      '400 depends_on must reference a defined step',
    );
    expect(await answer('POST', `${path}/steps/a/fail`, {})).toBe('400 error_text is required');
    expect(await answer('POST', `${path}/fail`, {})).toBe('400 error_text is required');
    expect(await answer('POST', `${path}/steps/a/input-required`, {})).toBe('400 reason is required');
    expect(await answer('POST', `${path}/resume`)).toBe('409 run is running');
  });

  test('runs its steps in order, and its output contains those of the last steps', async () => {
    const { at } = await begin([
      { step_key: 'c', depends_on: ['a', 'b'] },
      { step_key: 'a' },
      { step_key: 'b' },
    ]);
    const step = (step_key: string) => ({ ...at, step_key });
    expect(await outcome(root.call('startStep', { params: step('c') }))).toBe('step is pending');
    expect((await root.call('startStep', { params: step('a') })).status).toBe('running');
    expect(await outcome(root.call('startStep', { params: step('a') }))).toBe('step is running');
    await root.call('completeStep', { params: step('a'), body: { output: { n: 1 } } });
    expect(await outcome(root.call('completeStep', { params: step('a'), body: {} }))).toBe(
      'step is completed',
    );
    await root.call('completeStep', { params: step('b'), body: {} });
    await root.call('completeStep', { params: step('c'), body: { output: 'done' } });
    const run = (await root.call('getRun', { params: at })) as Run;
    expect(run).toMatchObject({ status: 'completed', output: { c: 'done' }, attempt: 1 });
    const refused = 'completed run cannot be resumed; use restart';
    expect(await outcome(root.call('resumeRun', { params: at }))).toBe(refused);
    const again = (await root.call('restartRun', { params: at })) as Run;
    expect(again).toMatchObject({ status: 'running', output: null, attempt: 2, ended_at: null });
    const steps = (await root.call('listSteps', { params: at })) as { status: string; output: unknown }[];
    expect(steps.map(({ status, output }) => [status, output])).toEqual([
      ['pending', null],
      ['ready', null],
      ['ready', null],
    ]);
  });

  test('skips the dependents of a failed step, and one of two concurrent resumes succeeds', async () => {
    const { at } = await begin([
      { step_key: 'a' },
      { step_key: 'b', depends_on: ['a'] },
      { step_key: 'z', depends_on: ['b'], when: 'always' },
    ]);
    await root.call('failStep', { params: { ...at, step_key: 'a' }, body: { error_text: 'no luck' } });
    const statuses = async () =>
      ((await root.call('listSteps', { params: at })) as { status: string }[]).map(({ status }) => status);
    expect(await statuses()).toEqual(['failed', 'skipped', 'ready']);
    await root.call('completeStep', { params: { ...at, step_key: 'z' }, body: {} });
    const failed = (await root.call('getRun', { params: at })) as Run;
    expect(failed).toMatchObject({ status: 'failed', error: 'step a failed: no luck' });
    const resumes = await Promise.all([1, 2].map(() => outcome(root.call('resumeRun', { params: at }))));
    expect(resumes.toSorted()).toEqual(['ok', 'run is running']);
    expect(await statuses()).toEqual(['ready', 'pending', 'completed']);
  });

  test('takes no answer to an earlier question of a step, and no result of an earlier start', async () => {
    const { at } = await begin([{ step_key: 'a' }]);
    const of_step = { params: { ...at, step_key: 'a' } };
    const send = (command: string, body: object) =>
      answer('POST', `/api/teams/${at.team_id}/runs/${at.run_id}/steps/a/${command}`, body);
    const ask = (reason: string) => root.call('requireStepInput', { ...of_step, body: { reason } });
    const { started_at } = await root.call('startStep', of_step);
    const { waiting_since } = await ask('Which title?');
    expect(await send('resume', { input: 'Rain', waiting_since })).toBe('200');
    expect(await send('resume', { input: 'Rain', waiting_since })).toBe('409 step is running');
    await ask('Print it?');
    const changed = '409 step changed concurrently; reload and retry';
    expect(await send('resume', { input: 'Snow', waiting_since })).toBe(changed);
    expect(await send('complete', { started_at: null })).toBe(changed);
    expect(await send('fail', { error_text: 'no', started_at: '2026-01-01T00:00:00.000Z' })).toBe(changed);
    expect(await send('resume', { waiting_since: 'yesterday' })).toMatch(/^400 waiting_since /);
    expect(await send('complete', { started_at: 'first' })).toMatch(/^400 started_at /);
    const [step] = await root.call('listSteps', { params: at });
    expect(step).toMatchObject({ status: 'input_required', error_text: 'Print it?', answer: 'Rain' });
    // Without these fields, a command is about whatever the step does now.
    expect(await send('resume', { input: 'Yes' })).toBe('200');
    expect(await send('complete', { started_at })).toBe('200');
  });

  test('is not restarted or resumed by somebody who does not know its current state', async () => {
    const { at } = await begin([]);
    const send = (command: string, body?: object) =>
      answer('POST', `/api/teams/${at.team_id}/runs/${at.run_id}/${command}`, body);
    const changed = '409 run changed concurrently; reload and retry';
    const fail = () => root.call('failRun', { params: at, body: { error_text: 'no' } });
    const { version } = await fail();
    expect(await send('restart', { version })).toBe('200');
    expect(await send('restart', { version })).toBe(changed);
    expect(await send('resume', { version })).toBe('409 run is running');
    await fail();
    expect(await send('resume', { version })).toBe(changed);
    expect(await send('restart', { version: 'last' })).toMatch(/^400 version /);
    expect(await root.call('getRun', { params: at })).toMatchObject({ status: 'failed', attempt: 2 });
    // Without a version, both apply to the run as it is.
    expect(await send('resume')).toBe('200');
    expect(await send('restart')).toBe('200');
    await root.call('completeRun', { params: at, body: {} });
    expect(await send('resume', { version })).toBe('409 completed run cannot be resumed; use restart');
  });

  test('without steps waits until its leader ends it', async () => {
    const { at } = await begin([]);
    const run = await root.call('completeRun', { params: at, body: { output: [1, 2] } });
    expect(run).toMatchObject({ status: 'completed', output: [1, 2] });
    expect(await outcome(root.call('cancelRun', { params: at }))).toBe('run is completed');
  });

  test('lists its members, with the first one as the leader if none is defined', async () => {
    const team = await ada.call('createTeam', {
      body: { name: unnamed(), spec: { members: [member] }, human_members: ['bob'] },
    });
    const run = await ada.call('createRun', { params: { team_id: team.id }, body: {} });
    const found = await ada.call('listRunMembers', { params: { run_id: run.id } });
    expect(found).toMatchObject({ run_id: run.id, team_id: team.id });
    expect(found.leader).toMatchObject({ actor_id: `m@${team.id}`, role: 'worker', pending_messages: 0 });
    expect(found.members.map(({ actor_id }) => actor_id)).toEqual([`m@${team.id}`, 'user:ada', 'user:bob']);
  });

  test('is created once per idempotency key', async () => {
    const { team } = await begin([]);
    const createRun = () =>
      root.call('createRun', { params: { team_id: team.id }, body: {}, idempotency_key: `key-${team.id}` });
    const [first, second] = [await createRun(), await createRun()];
    expect(second.id).toBe(first.id);
  });
});

describe('the events of a run', () => {
  async function frames(at: { team_id: string; run_id: string }, count: number, after?: number) {
    const found: Frame[] = [];
    const stop = new AbortController();
    const query = after === undefined ? {} : { after };
    for await (const frame of root.follow('followRun', { params: at, query, signal: stop.signal })) {
      found.push(frame);
      if (found.length === count) stop.abort();
    }
    return found.map(({ id, data }) => ({ id: Number(id), data: data as { type: string; record: object } }));
  }

  test('are the same from any position', async () => {
    const { at } = await begin([{ step_key: 'a' }, { step_key: 'b', depends_on: ['a'] }]);
    for (const step_key of ['a', 'b']) {
      await root.call('startStep', { params: { ...at, step_key } });
      await root.call('completeStep', { params: { ...at, step_key }, body: {} });
    }
    const whole = await frames(at, 9);
    expect(whole.at(-1)!.data).toMatchObject({ type: 'run', record: { status: 'completed' } });
    for (const [n, { id }] of whole.slice(0, -1).entries())
      expect(await frames(at, whole.length - n - 1, id)).toEqual(whole.slice(n + 1));
    const [reset] = await frames(at, 1, whole.at(-1)!.id + 1_000);
    expect(reset).toMatchObject({ id: whole.at(-1)!.id, data: { type: 'error', code: 'reset' } });
  });

  test('continue after a restart of the plane, and reach the human members of the team in the fleet feed', async () => {
    const { at, team } = await begin([{ step_key: 'a' }], ada);
    await ada.call('updateTeam', {
      params: { team_id: team.id },
      body: { version: 1, human_members: ['bob'] },
    });
    const before = await frames(at, 2);
    await plane.kill();
    await plane.start();
    const stop = new AbortController();
    const seen = (async () => {
      // From the beginning, because the change may come before the stream is open.
      for await (const { data } of bob.follow('followAll', { query: { after: 0 }, signal: stop.signal })) {
        const { record } = data as { record?: { id?: string; status?: string } };
        if (record?.id === at.run_id && record.status === 'cancelled') return record;
      }
      return null;
    })();
    const live = frames(at, 2, before.at(-1)!.id);
    await bob.call('cancelRun', { params: at });
    expect((await live).map(({ data }) => data.type)).toEqual(['step', 'run']);
    expect(await seen).toMatchObject({ team_id: team.id });
    stop.abort();
  });
});
