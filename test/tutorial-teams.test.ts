/**
 * The tutorial on teams, line by line, against the real program, with the teams of `examples/`. Only what a test cannot do
 * is replaced: the terminals, Ctrl-C, and the speed of the demo agent. The plane is killed during the second run.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { WITH_NODES } from '../src/testing/agent-node.ts';
import { SVC, TestPlane } from '../src/testing/plane.ts';
import { makeRepository } from '../src/testing/repository.ts';
import { put, tutorialBlocks } from '../src/testing/tutorials.ts';

const EXAMPLES = new URL('../examples/', import.meta.url);

let plane: TestPlane;
let repo: string;
const begun = new Set<ChildProcess>();
afterEach(async () => {
  for (const child of begun) {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
  await plane.close();
});

interface Terminal {
  child: ChildProcess;
  /** Its output so far. */
  text: string;
  /** Its exit code. */
  ended: Promise<number | null>;
}

/** Runs a script in a terminal in the repository. */
function begin(script: string): Terminal {
  const { url, token, env } = plane;
  const PATH = `${dirname(SVC)}:${env.PATH}`;
  const child = spawn('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: repo,
    env: { ...env, PATH, SVC_URL: url, SVC_TOKEN: token },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  begun.add(child);
  child.on('exit', () => begun.delete(child));
  const terminal: Terminal = { child, text: '', ended: once(child, 'close').then(() => child.exitCode) };
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      terminal.text += text;
    });
  }
  return terminal;
}

async function run(script: string): Promise<string> {
  const terminal = begin(script);
  expect([await terminal.ended, script, terminal.text]).toEqual([0, script, terminal.text]);
  return terminal.text;
}

async function sees(terminal: Terminal, text: string): Promise<void> {
  while (!terminal.text.includes(text)) {
    if (terminal.child.exitCode !== null) throw new Error(`${text}: ${terminal.text}`);
    await sleep(20);
  }
}

/** Watches until this text appears, and presses Ctrl-C. */
async function watch(command: string, text: string): Promise<void> {
  const terminal = begin(put(command, { 'svc runs watch': 'exec svc runs watch' }));
  await sees(terminal, text);
  terminal.child.kill('SIGINT');
  expect(await terminal.ended).toBe(130);
}

/** Sender, recipient and status of each message in the only run of a team. */
async function mailRoutes(team: string): Promise<string[]> {
  const { client } = plane;
  let team_id = '';
  for await (const { id, name } of client.all('listTeams')) if (name === team) team_id = id;
  let run_id = '';
  for await (const { id } of client.all('listRuns', { params: { team_id } })) run_id = id;
  const mail = client.all('listRunMail', { params: { run_id } });
  const ways: string[] = [];
  for await (const { from_actor_id, to_actor_id, status } of mail) {
    ways.push(
      [from_actor_id, to_actor_id]
        .map((id) => id.split('@')[0])
        .join(' to ')
        .concat(`: ${status}`),
    );
  }
  return ways.sort();
}

/** Makes a repository with the examples, and speeds up their demo agent. */
async function makeExamples(): Promise<void> {
  const files: Record<string, string> = {};
  for (const name of await readdir(EXAMPLES)) {
    const text = await readFile(new URL(name, EXAMPLES), 'utf8');
    files[`examples/${name}`] = text.replaceAll(/"--speed",\s*"8"/g, '"--speed", "100"');
  }
  repo = makeRepository(join(plane.folder, 'repo'), files);
}

test('the tutorial on teams works as written, even if the plane is killed', {
  timeout: 240_000,
}, async () => {
  plane = await TestPlane.open({ env: WITH_NODES });
  await makeExamples();
  const [start, pipeline, demo, human, answer, end, ...more] = await tutorialBlocks('first-team');
  expect(start).toBe('npm start -- --set internal_grpc.enabled=true\n');
  expect(more).toEqual([]);

  const built = await run(pipeline!);
  expect(built).toMatch(/^output +\{"built":true,"steps":\{"checkout":\{"commit":.*"json":3,/m);
  expect(built).toMatch(/^status +completed\ninput +\{"repository":/m);

  const team = begin(demo!);
  await sees(team, '\tpart-1\tred\trunning\t');
  await plane.kill();
  await plane.start();
  expect([await team.ended, team.text]).toEqual([0, team.text]);
  for (const [part, worker] of ['red', 'blue'].entries()) {
    const step = `part-${part + 1}\t${worker}`;
    // Once in the run's changes, once in its steps.
    expect(team.text.split(`\tstep\t${step}\tcompleted\t1\t`)).toHaveLength(2);
    expect(team.text.split(`\n${step}\tcompleted\t1\t`)).toHaveLength(2);
    const reports = team.text.matchAll(
      new RegExp(`\\t${worker}@\\S+\\tacknowledged\\t{"type":"report",`, 'g'),
    );
    expect([...reports]).toHaveLength(1);
  }
  expect(team.text).toMatch(/^status +completed\n.*\noutput +2 of 2 steps completed, 2 messages came in\./m);

  expect(await mailRoutes('demo-team')).toEqual([
    'blue to lead: acknowledged',
    'lead to blue: acknowledged',
    'lead to red: acknowledged',
    'red to lead: acknowledged',
  ]);

  const [made, created, watched] = human!.trim().split('\n') as [string, string, string];
  await run(`${made}\n${created}`);
  await watch(watched, 'svc reviews');
  const [allow, listed, resume] = answer!.trim().split('\n') as [string, string, string];
  expect(await run(allow)).toContain('Allow');
  await watch(watched, 'svc steps resume');
  expect(await run(listed)).toMatch(/^title\teditor\tinput_required\t1\t\w+\tWhat should its title be\?$/m);
  expect(await run(resume)).toBe('title\tready\n');
  await watch(watched, '\tprint\tpress\tready\t');
  const ended = await run(end!);
  expect(ended).toMatch(/^print\tcompleted\n/);
  expect(ended).toMatch(/^status +completed\noutput +\{"print":"Twelve copies"\}$/m);
});
