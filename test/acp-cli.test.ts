/**
 * Conversations through the CLI alone, against the real program: the tutorial line by line, and the example agent of the
 * ACP SDK. `svc logs -f` runs in a separate process.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { longTest } from '../src/testing/long.ts';
import { SVC, TestPlane } from '../src/testing/plane.ts';
import { put, tutorialBlocks } from '../src/testing/tutorials.ts';

const EXAMPLE = fileURLToPath(new URL('examples/agent.js', import.meta.resolve('acp-example')));

let plane: TestPlane | null = null;
const children: ChildProcess[] = [];
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await plane?.close();
  plane = null;
});

/** Starts a command in a separate process. */
function begin(program: string, ...args: string[]) {
  const { env, url, token, folder } = plane!;
  const child = spawn(program, args, {
    cwd: folder,
    env: { ...env, SVC_URL: url, SVC_TOKEN: token, PATH: `${dirname(SVC)}:${env.PATH}` },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  return child;
}

/** Returns a function that waits until a command has printed a text so many times, and returns its whole output. */
function listen(child: ReturnType<typeof begin>) {
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  const seen = (part: string, times = 1) =>
    new Promise<string>((done) => {
      const check = () => {
        if (text.split(part).length <= times) return;
        child.stdout.off('data', check);
        done(text);
      };
      child.stdout.on('data', check);
      check();
    });
  return seen;
}

async function bash(script: string): Promise<string> {
  const child = begin('bash', '-euo', 'pipefail', '-c', script);
  const ended = once(child, 'close');
  const [stdout, stderr] = await Promise.all([readAll(child.stdout), readAll(child.stderr)]);
  await ended;
  expect(child.exitCode, `${script}\n${stdout}\n${stderr}`).toBe(0);
  return stdout + stderr;
}

test('the tutorial on talking to an agent works as written', async () => {
  plane = await TestPlane.prepare();
  // The demo agent keeps its sessions there.
  await plane.start({ XDG_STATE_HOME: join(plane.folder, 'state'), DEMO_AGENT_SPEED: '5' });
  await plane.join();
  const [create, answer, more, ...rest] = await tutorialBlocks('first-agent', 'Talk to an agent');
  expect(rest).toEqual([]);
  await bash(put(create!, { 'svc logs asks -f ': '' }));
  const seen = listen(begin(SVC, 'logs', 'asks', '-f'));
  await seen('svc reviews allow rev_');
  const answered = await bash(answer!);
  expect(answered).toMatch(
    /^rev_\w+\tasks\t\d+s\tAdd a note to svc-demo\.md\tdemo-once, demo-always, demo-reject$/m,
  );
  expect(answered).toMatch(/^\+- .*Tidy the notes/m);
  expect(answered).toMatch(/^rev_\w+ {2}Allow: Add a note to svc-demo\.md$/m);
  await seen('┃ turn     ended: end_turn\n');
  const { id, workdir } = JSON.parse((await plane.cli(['agents', 'get', 'asks', '--json'])).stdout);
  expect(await readFile(join(workdir, 'svc-demo.md'), 'utf8')).toContain('Tidy the notes');

  const last = await bash(more!);
  expect(last).toMatch(/^prm_\w+\nagt_\w+\tasks\tcancelled\ncancelled the turn of agt_\w+\n$/);
  expect((await plane.get(id)).status).toBe('cancelled');
  await seen('┃ turn     is cancelled\n');
});

longTest('the example agent is prompted, watched and answered from three terminals', async () => {
  plane = await TestPlane.open();
  const argv = [
    'agents',
    'create',
    'asks',
    '--protocol',
    'acp',
    '--prompt',
    'Tidy the configuration',
    '--start',
  ];
  expect((await plane.cli([...argv, '--', process.execPath, EXAMPLE])).code).toBe(0);
  const seen = listen(begin(SVC, 'logs', 'asks', '-f'));
  await seen('svc reviews allow rev_');
  const allowed = await plane.cli(['reviews', 'allow']);
  expect(allowed.stderr).toMatch(/^rev_\w+ {2}Allow this change: Modifying critical configuration file\n$/);
  const turn = await seen('┃ turn     ended: end_turn\n');
  expect(turn.replace(/rev_\w+/, 'rev_1')).toBe(`> Tidy the configuration
I'll help you with that. Let me start by reading some files to understand the current situation.
┃ read     Reading project files  pending  /project/README.md
┃ read     Reading project files  completed
Now I understand the project structure. I need to make some changes to improve it.
┃ edit     Modifying critical configuration file  pending  /project/config.json
┃ asks     Modifying critical configuration file  edit  /home/user/project/config.json
┃   {"path":"/home/user/project/config.json","content":"{\\"database\\": {\\"host\\": \\"new-host\\"}}"}
┃   [allow]   Allow this change  (allow_once)
┃   [reject]  Skip this change  (reject_once)
┃   svc reviews allow rev_1
┃ answer   ana: Allow this change  Modifying critical configuration file
┃ edit     Modifying critical configuration file  completed
Perfect! I've successfully updated the configuration. The changes have been applied.
┃ turn     ended: end_turn
`);

  const waiting = begin(SVC, 'prompt', 'asks', '--wait', 'once', 'more');
  const ended = once(waiting, 'close');
  const printed = listen(waiting);
  await printed('svc reviews allow rev_');
  expect((await plane.cli(['reviews', 'deny'])).code).toBe(0);
  expect(await ended).toEqual([0, null]);
  expect(await printed('> once more\n')).toContain('I understand you prefer not to make that change.');

  expect((await plane.cli(['reviews', 'ls'])).stdout).toBe('');
  await expect
    .poll(async () => (await plane!.cli(['agents', 'search', 'asks', 'Tidy'])).stdout, { timeout: 20_000 })
    .toMatch(/\tTidy the configuration\n$/);
});
