/** `svc runs watch` against the real program, with members without agents. */
import { beforeEach, expect, test } from 'vitest';
import type { Run } from '../src/features/runs/rules/run.ts';
import { type RunOptions, run } from '../src/testing/cli.ts';
import { longTest } from '../src/testing/long.ts';
import type { TestPlane } from '../src/testing/plane.ts';
import { sharedPlane } from '../src/testing/shared-plane.ts';

const share = sharedPlane();
let plane: TestPlane;
/** The first run of a team of its own, and what the CLI calls it. */
let watched: Run;
let name: string;
let teams = 0;
beforeEach(async () => {
  plane = await share();
  const spec = {
    members: [{ member_id: 'dev' }, { member_id: 'ops' }],
    steps: [
      { step_key: 'build', member_id: 'dev' },
      { step_key: 'ship it', member_id: 'ops', depends_on: ['build'] },
    ],
  };
  const team = await plane.client.call('createTeam', { body: { name: `site-${++teams}`, spec } });
  name = `site-${teams}#1`;
  watched = await plane.client.call('createRun', { params: { team_id: team.id }, body: {} });
});

/** A running command; `seen` resolves when it has printed a text. */
function begin(argv: string[], options: Partial<RunOptions> = {}) {
  let text = '';
  const checks = new Set<() => void>();
  const onStdout = (piece: string) => {
    text += piece;
    for (const check of checks) check();
  };
  const env = { SVC_URL: plane.url, SVC_TOKEN: plane.token };
  const ended = run(argv, { home: plane.folder, env, onStdout, ...options });
  const seen = (part: string) =>
    new Promise<void>((done) => {
      const check = () => text.includes(part) && done();
      checks.add(check);
      check();
    });
  return { ended, seen };
}

const params = (step_key: string) => ({ team_id: watched.team_id, run_id: watched.id, step_key });
const start = (key: string) => plane.client.call('startStep', { params: params(key) });
const complete = (key: string) => plane.client.call('completeStep', { params: params(key), body: {} });
const rowsOf = (stdout: string) =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t').slice(1).join(' '));

test('prints each change once, even if the plane is killed, and exits with 0 for a completed run', async () => {
  const watch = begin(['runs', 'watch', name]);
  await start('build');
  await watch.seen('step\tbuild\tdev\trunning');
  await plane.kill();
  await plane.start();
  await complete('build');
  await watch.seen('step\tship it\tops\tready');
  await complete('ship it');
  const { code, stdout, stderr } = await watch.ended;
  expect(rowsOf(stdout)).toEqual([
    'step build dev ready 0 -',
    'step ship it ops pending 0 -',
    `run ${watched.id} - running 1 -`,
    'step build dev running 1 -',
    'step build dev completed 1 -',
    'step ship it ops ready 0 -',
    'step ship it ops completed 0 -',
    `run ${watched.id} - completed 1 -`,
  ]);
  expect(stderr).toBe(`${plane.url} does not answer; trying again\n${plane.url} is back\n`);
  expect(code).toBe(0);
});

test('exits with 3 for a failed or cancelled run, but not for a failure before a resume', async () => {
  const of_run = { team_id: watched.team_id, run_id: watched.id };
  await plane.client.call('failStep', { params: params('build'), body: { error_text: 'no\x1bway' } });
  const failed = await begin(['runs', 'watch', watched.id]).ended;
  expect(failed.code).toBe(3);
  expect(failed.stderr).toBe(`svc: run ${watched.id} failed: step build failed: no\\x1bway\n`);
  expect(failed.stdout).not.toContain('\x1b');

  const resumed = begin(['runs', 'resume', name, '--watch']);
  await resumed.seen(`run\t${watched.id}\t-\tfailed`);
  await plane.client.call('cancelRun', { params: of_run });
  const cancelled = await resumed.ended;
  expect(cancelled).toMatchObject({ code: 3, stderr: `svc: run ${watched.id} cancelled\n` });
  expect(rowsOf(cancelled.stdout).at(-1)).toBe(`run ${watched.id} - cancelled 1 -`);
});

test('exits with 124 at the time limit, and with 130 on Ctrl-C', async () => {
  const late = await begin(['runs', 'watch', watched.id, '--timeout', '300ms']).ended;
  expect(late).toMatchObject({ code: 124, stderr: `svc: run ${watched.id} is still running\n` });
  const stop = new AbortController();
  const stopped = begin(['runs', 'watch', watched.id], { signal: stop.signal });
  await stopped.seen('build');
  stop.abort();
  expect(await stopped.ended).toMatchObject({ code: 130, stderr: '' });
});

test('--json prints the events of the run', async () => {
  await complete('build');
  await complete('ship it');
  const { code, stdout } = await begin(['runs', 'watch', name, '--json'], { tty: true }).ended;
  const events = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(code).toBe(0);
  expect(events.at(-1)).toMatchObject({ type: 'run', record: { id: watched.id, status: 'completed' } });
});

test('shows a live table on a terminal, with the command that resumes a waiting step', async () => {
  const env = { SVC_URL: plane.url, SVC_TOKEN: plane.token, NO_COLOR: '1' };
  const watch = begin(['runs', 'watch', name], { tty: true, env });
  await watch.seen('waits for build');
  await complete('build');
  await start('ship it');
  const reason = 'which\x1b[2Jone?';
  await plane.client.call('requireStepInput', { params: params('ship it'), body: { reason } });
  await watch.seen(`svc steps resume ${watched.id} 'ship it' --input <json>`);
  await plane.client.call('resumeStep', { params: params('ship it'), body: { input: 'a' } });
  await complete('ship it');
  const { code, stdout, stderr } = await watch.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const last = stdout.slice(stdout.lastIndexOf('\x1b[?2026h'));
  const lines = last.replace(/\x1b\[[?\d]*[a-zA-Z]/g, '').split('\n');
  expect(lines[0]).toMatch(new RegExp(`^${name} {2}${watched.id} {2}completed`));
  expect(lines.slice(1, 3)).toEqual(['2 steps: 2 completed', 'STEP     MEMBER  STATUS     TRY  TIME  NOTE']);
  expect(stdout).toContain('which\\x1b[2Jone?');
  // Only sequences that redraw in place: synchronized updates, cursor up, and clearing the rest of a line or the screen.
  expect(
    new Set(stdout.match(/\x1b\[[?\d]*[a-zA-Z]/g)?.map((found) => found.replace(/^\x1b\[\d+F/, 'F'))),
  ).toEqual(new Set(['\x1b[?2026h', '\x1b[K', '\x1b[J', '\x1b[?2026l', 'F']));
});

test('a failed step shows the last lines of its stderr, and the command for all of its output', async () => {
  const agent = { command: 'echo first >&2; echo second >&2; exit 3', workdir: plane.work };
  const spec = {
    members: [{ member_id: 'dev', agent }],
    steps: [{ step_key: 'build', member_id: 'dev' }],
  };
  await plane.client.call('createTeam', { body: { name: 'broken', spec } });
  const { code, stderr } = await begin(['runs', 'create', 'broken', '--watch']).ended;
  expect(code).toBe(3);
  expect(stderr).toMatch(/^for all output of step build: svc logs agt_\w+\n/);
  expect(stderr).toMatch(/svc: run run_\w+ failed: step build failed: exit code 3: first\nsvc: second\n$/);
  const shown = await begin(['steps', 'show', 'broken#1', 'build'], { tty: true }).ended;
  expect(shown.stdout).toContain('error_text\n  exit code 3: first\n  second\n');
  expect(shown.stderr).toContain('svc logs agt_');
});

test('a step that failed before its agent was created names no output', async () => {
  const agent = { command: 'true', workdir: `${plane.work}/missing/folder` };
  const spec = {
    members: [{ member_id: 'dev', agent }],
    steps: [{ step_key: 'build', member_id: 'dev' }],
  };
  await plane.client.call('createTeam', { body: { name: 'homeless', spec } });
  const { code, stderr } = await begin(['runs', 'create', 'homeless', '--watch']).ended;
  expect(code).toBe(3);
  expect(stderr).toMatch(/^svc: run run_\w+ failed: step build failed: workdir/);
  expect(stderr).not.toContain('svc logs');
  const shown = await begin(['steps', 'show', 'homeless#1', 'build'], { tty: true }).ended;
  expect(shown.stdout).toContain('error_text');
  expect(shown.stderr).toBe('');
});

longTest('agents ls --watch prints each agent again when its status changes', async () => {
  const stop = new AbortController();
  const watch = begin(['agents', 'ls', '--watch'], { signal: stop.signal });
  const body = { name: 'quick', command: 'true', workdir: plane.work };
  const { id } = await plane.client.call('createAgent', { body });
  const rows = begin(['agents', 'ls', '--watch', '--json'], { signal: stop.signal });
  await rows.seen(id);
  await plane.client.call('startAgent', { params: { agent_id: id } });
  await watch.seen(`${id}\tquick\tcompleted`);
  await rows.seen('"status":"completed"');
  stop.abort();
  expect((await watch.ended).code).toBe(130);
  await rows.ended;
});
