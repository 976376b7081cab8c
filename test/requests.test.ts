/** Requests to a real plane: unknown fields, updates without a change, filters, warnings, waiting and HEAD. */
import { mkdir, rename, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requesterOf } from '../src/testing/http.ts';
import { TestPlane } from '../src/testing/plane.ts';

let plane: TestPlane;
beforeAll(async () => {
  plane = await TestPlane.open();
});
afterAll(() => plane.close());

/** One request as root. */
const ask = requesterOf(() => plane);

/** The number of audit records, which is the newest id, since ids have no gaps. */
async function audited(): Promise<number> {
  return (await ask('GET', '/api/admin/audit?limit=1')).body.items[0].id;
}

const spec = { members: [{ member_id: 'hand' }] };

test('an update without known fields or with unchanged values leaves no audit record', async () => {
  const agent = await plane.create({ name: 'same', command: 'true', env: { A: '1' } });
  const team = (await ask('POST', '/api/teams', { name: 'same', spec })).body;
  const task = (await ask('POST', `/api/teams/${team.id}/tasks`, { title: 'same' })).body;
  const user = await plane.client.call('createUser', {
    body: { username: 'same', password: 'quite a long password' },
  });
  await ask('PATCH', '/api/admin/config', { 'retention.days': 9 });
  const before = await audited();

  const paths = [
    ['PATCH', `/api/agents/${agent.id}`],
    ['PUT', `/api/teams/${team.id}`],
    ['PATCH', `/api/teams/${team.id}/tasks/${task.id}`],
    ['PATCH', '/api/admin/config'],
  ] as const;
  for (const [method, path] of paths) {
    expect(await ask(method, path, {})).toMatchObject({ status: 400, body: { error: 'nothing to change' } });
  }
  const unknown = await ask('PUT', `/api/teams/${team.id}`, { nmae: 'x', version: 1 });
  expect([unknown.status, unknown.headers.get('x-ignored-fields')]).toEqual([400, 'nmae']);

  const same = [
    await ask('PATCH', `/api/agents/${agent.id}`, {
      name: 'same',
      labels: {},
      command: 'true',
      env: { A: '1' },
    }),
    await ask('PUT', `/api/teams/${team.id}`, { name: 'same', spec, human_members: [], version: 1 }),
    await ask('PATCH', `/api/teams/${team.id}/tasks/${task.id}`, { title: 'same', status: 'open' }),
    await ask('PATCH', `/api/admin/users/${user.id}`, { username: 'same', role: 'user' }),
    await ask('PATCH', '/api/admin/config', { 'retention.days': 9 }),
  ];
  expect(same.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  // Every accepted PUT of a team raises its version.
  expect([same[0]!.body.updated_at, same[1]!.body.version, same[2]!.body.version]).toEqual([
    agent.updated_at,
    2,
    1,
  ]);
  expect(await audited()).toBe(before);

  const changes = [
    ['PATCH', `/api/agents/${agent.id}`, { env: { A: '2' } }],
    ['PUT', `/api/teams/${team.id}`, { human_members: ['same'], version: 2 }],
    ['PATCH', `/api/teams/${team.id}/tasks/${task.id}`, { title: 'other' }],
    ['PATCH', `/api/admin/users/${user.id}`, { role: 'root' }],
    ['PATCH', '/api/admin/config', { 'retention.days': null }],
  ] as const;
  for (const [at, [method, path, body]] of changes.entries()) {
    expect((await ask(method, path, body)).status).toBe(200);
    expect(await audited()).toBe(before + at + 1);
  }
});

test('agents can be filtered in the API and in the CLI', async () => {
  const made = await ask('POST', '/api/agents', {
    ...{ name: 'listed', command: 'true', workdir: plane.work, labels: { env: 'prod', tier: 'web' } },
  });
  await ask('POST', '/api/agents', {
    name: 'other',
    command: 'true',
    workdir: plane.work,
    labels: { env: 'prod' },
  });
  const ids = async (query: string) => {
    const { body, headers } = await ask('GET', `/api/agents?${query}`);
    return [body.map(({ id }: { id: string }) => id), headers.get('x-ignored-fields')];
  };
  expect(await ids('label=env%3Dprod&label=tier%3Dweb&owner=ana')).toEqual([[made.body.id], null]);
  expect(await ids('label=tier%3Dweb&labels=x')).toEqual([[made.body.id], '?labels']);
  expect(await ids('label=env%3Dtest')).toEqual([[], null]);
  expect(await ask('GET', '/api/agents?label=env')).toMatchObject({
    ...{ status: 400, body: { error: 'label must be <name>=<value>' } },
  });
  const ls = async (...more: string[]) => (await plane.cli(['agents', 'ls', ...more])).stdout.split('\t')[0];
  expect(await ls('--label', 'env=prod', '--label', 'tier=web')).toBe(made.body.id);
  expect(await ls('--query', 'LISTED', '--owner', 'ana')).toBe(made.body.id);
  expect(await ls('--label', 'env=prod', '--owner', 'nobody')).toBe('');
  expect(await plane.cli(['agents', 'ls', '--label', 'env'])).toMatchObject({ code: 2 });
});

test.each(['/api/presets', '/api/admin/config'])(
  '%s has pages if the request asks for them',
  async (path) => {
    const ids = (items: Record<string, unknown>[]) => items.map(({ id, key }) => id ?? key);
    const { body: whole } = await ask('GET', path);
    const found: unknown[] = [];
    let cursor: string | undefined;
    do {
      const page = await ask('GET', `${path}?limit=3${cursor ? `&cursor=${cursor}` : ''}`);
      expect(page.headers.get('x-ignored-fields')).toBeNull();
      expect(page.body.items.length).toBeLessThanOrEqual(3);
      found.push(...ids(page.body.items));
      cursor = page.body.next_cursor;
    } while (cursor !== undefined);
    expect(found).toEqual(ids(whole));
    expect(found.length).toBeGreaterThan(3);
    const before = Buffer.from('[-1]').toString('base64url');
    for (const wrong of ['limit=0', 'cursor=x', `cursor=${before}`])
      expect(await ask('GET', `${path}?${wrong}`)).toMatchObject({ status: 400 });
  },
);

test('a duplicate name causes a warning, and --replace deletes agents of that name that are not running', async () => {
  const body = { name: 'twice', command: 'true', workdir: plane.work };
  const create = async (query = '') => {
    const { status, headers, body: made } = await ask('POST', `/api/agents${query}`, body);
    return { status, warning: headers.get('x-warning'), made };
  };
  const first = await create();
  expect([first.status, first.warning]).toEqual([201, null]);
  const second = await create();
  expect([second.status, second.warning]).toEqual([
    ...[201, `the name is used by other agents of this owner: ${first.made.id}`],
  ]);
  const third = await create('?replace=true');
  expect([third.status, third.warning]).toEqual([201, null]);
  expect((await ask('GET', '/api/agents?name=twice')).body.map(({ id }: { id: string }) => id)).toEqual([
    third.made.id,
  ]);

  // A replayed response has the headers of the first.
  const again = () => ask('POST', '/api/agents?x=1', { ...body, unknown: 1 }, { key: 'twice' });
  const headersOf = ({ headers }: Awaited<ReturnType<typeof again>>) =>
    ['x-warning', 'x-ignored-fields', 'location'].map((name) => headers.get(name));
  const [one, replayed] = [await again(), await again()];
  expect(replayed.body).toEqual(one.body);
  expect(headersOf(one)).toEqual([
    `the name is used by other agents of this owner: ${third.made.id}`,
    'unknown, ?x',
    `/api/agents/${one.body.id}`,
  ]);
  expect(headersOf(replayed)).toEqual(headersOf(one));
  await ask('DELETE', `/api/agents/${one.body.id}`);

  const argv = ['agents', 'create', 'twice', '-w', plane.work, '--json', '-c'];
  const created = await plane.cli([...argv, 'sleep 1000', '--start']);
  expect(created).toMatchObject({
    ...{
      code: 0,
      stderr: `svc: warning: the name is used by other agents of this owner: ${third.made.id}\n`,
    },
  });
  const running = JSON.parse(created.stdout).id;
  expect(await plane.cli([...argv, 'true', '--replace'])).toMatchObject({
    code: 1,
    stderr: 'svc: agent is running\n',
  });
  await ask('POST', `/api/agents/${running}/stop`, { grace_seconds: 0 });
  expect(await plane.cli([...argv, 'true', '--replace'])).toMatchObject({ code: 0, stderr: '' });
  expect((await ask('GET', '/api/agents?name=twice')).body).toHaveLength(1);
});

test('the error for a refused path lists the allowed ones, and the CLI says what to do', async () => {
  const refused = await ask('POST', '/api/agents', { name: 'out', command: 'true', workdir: '/' });
  expect([refused.status, refused.body]).toEqual([
    400,
    { error: 'workdir path must be within allowed safe paths' },
  ]);
  expect(refused.headers.get('x-error-code')).toBe('workdir_not_safe');
  expect(refused.headers.get('x-allowed-paths')!.split(', ')).toContain(plane.work);
  expect(refused.headers.get('x-refused-path')).toBe('/');
  const { code, stderr } = await plane.cli(['agents', 'create', 'out', '-w', '/', '-c', 'true']);
  expect([code, stderr.split('\n')]).toEqual([
    1,
    [
      'svc: workdir path must be within allowed safe paths',
      'svc: refused: /',
      expect.stringContaining(`svc: allowed: ${plane.work}`),
      'svc: choose a folder within one of them; a root user can allow others: svc config allow /',
      'svc: on a remote node, add the folder to safe_paths in the configuration of that node',
      '',
    ],
  ]);
});

test('the CLI names a path that cannot be used', async () => {
  const missing = join(plane.work, 'missing');
  const refusal = async (...args: string[]) =>
    (await plane.cli(['agents', 'create', 'out', '-c', 'true', ...args])).stderr;
  expect(await refusal('-w', missing)).toBe(`svc: workdir does not exist\nsvc: path: ${missing}\n`);
  expect(await refusal('--repo', plane.work)).toBe(
    `svc: ${plane.work} is not a git repository\nsvc: choose one of those that svc nodes repositories lists\n`,
  );
});

test('a refused path in a run or at a start names the path, the allowed folders and the solution', async () => {
  const explained = (path: string) =>
    `workdir path must be within allowed safe paths: ${path} (allowed: ${plane.work}); use an allowed folder, or add this one to safe_paths`;
  const member = { member_id: 'hand', agent: { command: 'true', workdir: '/etc' } };
  const steps = [{ step_key: 'only', member_id: 'hand' }];
  const team = (await ask('POST', '/api/teams', { name: 'outside', spec: { members: [member], steps } }))
    .body;
  const { body: run } = await ask('POST', `/api/teams/${team.id}/runs`, {});
  const errors = async () =>
    (await ask('GET', `/api/teams/${team.id}/runs/${run.id}/steps`)).body.map(
      ({ error_text }: { error_text: string | null }) => error_text,
    );
  await expect.poll(errors, { timeout: 15_000 }).toEqual([explained('/etc')]);

  const workdir = join(plane.work, 'moved');
  await mkdir(workdir);
  const agent = await plane.create({ command: 'true', workdir });
  await rename(workdir, `${workdir}.was`);
  await symlink('/etc', workdir);
  await ask('POST', `/api/agents/${agent.id}/start`);
  await plane.finished(agent.id);
  const log = await ask('GET', `/api/agents/${agent.id}/log?type=error`);
  expect(log.body).toMatchObject([{ code: 'workdir_refused', error: explained(workdir) }]);
});

test('a request can wait for an agent to end, and returns the current record after the timeout', async () => {
  const { id } = await plane.agent('read line; exit 3', { stdin: true });
  const wait = (query: string) => ask('GET', `/api/agents/${id}?${query}`);
  expect((await wait('wait=0&until=ended')).body).toMatchObject({ id, status: 'running' });
  expect((await wait('wait=1&until=needs_you')).body).toMatchObject({ id, status: 'running' });
  const waiting = wait('wait=60&until=ended');
  await ask('POST', `/api/agents/${id}/input`, { data: 'go\n' });
  expect((await waiting).body).toMatchObject({ id, status: 'failed', exit_code: 3 });
  // An ended agent stays ended until somebody starts it, so this returns at once.
  expect((await wait('wait=60&until=idle')).body).toMatchObject({ status: 'failed' });

  const refused = async (query: string) => (await wait(query)).body.error;
  expect(await refused('wait=61&until=ended')).toBe('wait must be an integer from 0 to 60');
  expect(await refused('wait=1')).toBe('wait must be given together with until');
  expect(await refused('wait=1&until=bored')).toBe('until must be one of: ended, idle, needs_you');
  expect((await ask('GET', '/api/agents/agt_none?wait=60&until=ended')).status).toBe(404);
});

test('HEAD on an agent’s stream returns the documented headers without a body', async () => {
  const { id } = await plane.create({ command: 'true' });
  const known = await ask('HEAD', `/api/agents/${id}/events`);
  const header = (name: string) => known.headers.get(name);
  expect([
    known.status,
    header('content-type'),
    header('cache-control'),
    header('x-accel-buffering'),
  ]).toEqual([...[200, 'text/event-stream', 'no-cache', 'no']]);
  const unknown = await ask('HEAD', '/api/agents/agt_none/events');
  expect([unknown.status, unknown.headers.get('x-error-code'), unknown.body]).toEqual([
    ...[404, 'agent_not_found', null],
  ]);
  const nobody = await fetch(`${plane.url}/api/agents/${id}/events`, { method: 'HEAD' });
  expect([nobody.status, nobody.headers.get('x-error-code')]).toEqual([401, 'missing_authorization_token']);
});

test('the CLI warns about fields that the service ignores', async () => {
  const definition = { name: 'typo', spec: { ...spec, leader: 'hand' } };
  const made = await plane.cli(['teams', 'create', '--file', '-'], { input: JSON.stringify(definition) });
  expect(made).toMatchObject({
    code: 0,
    stderr: 'svc: warning: the service ignored unknown fields: spec.leader\n',
  });
});
