/**
 * The tutorials "Your first agent" (commands) and "Scripting the API", line by line, against the real program. Only what a test
 * cannot do is replaced: typing the PIN and the password, Ctrl-C, the other terminal, and the long job of the example.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { ROOT, SVC, TestPlane } from '../src/testing/plane.ts';
import { makeRepository } from '../src/testing/repository.ts';
import { put, readmeBlocks, tutorialBlocks } from '../src/testing/tutorials.ts';

let plane: TestPlane | null = null;
afterEach(async () => {
  await plane?.close();
  plane = null;
});

/** A plane without a root user, and a shell in a repository that it may use. */
async function open() {
  plane = await TestPlane.prepare();
  const repo = makeRepository(join(plane.folder, 'repo'), { 'a.txt': 'one\n' });
  const { env, folder } = plane;
  // The demo agent keeps its sessions below XDG_STATE_HOME.
  const state = join(plane.folder, 'state');
  Object.assign(env, { SVC_WORKTREE_REPO_ROOTS: repo, XDG_STATE_HOME: state, DEMO_AGENT_SPEED: '5' });
  await plane.start(env);
  const run = async (script: string) => {
    const child = spawn('bash', ['-euo', 'pipefail', '-c', script], {
      cwd: repo,
      env: { ...env, PATH: `${dirname(SVC)}:${env.PATH}` },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ended = once(child, 'close');
    const [stdout, stderr] = await Promise.all([readAll(child.stdout), readAll(child.stderr)]);
    await ended;
    expect(child.exitCode, `${script}\n${stdout}\n${stderr}`).toBe(0);
    return { stdout, stderr };
  };
  /** Ends `{ command` once it has printed this text. In the background, SIGINT is ignored. */
  const endAfter = (text: string) => {
    const shown = join(folder, 'shown');
    return `>${shown} & until grep -q '${text}' ${shown}; do sleep 0.1; done; kill $!; wait $! || true; cat ${shown}; }`;
  };
  const { pin } = JSON.parse(await readFile(join(plane.data_dir, 'join.json'), 'utf8'));
  const join_command = `svc join --pin-file <(echo ${pin}) -u ${ROOT.username} <<< '${ROOT.password}'`;
  return { plane, env, run, endAfter, join_command };
}

test('the tour of the README works as written', async () => {
  const { plane, run, endAfter, join_command } = await open();
  const [tour, ...more] = await readmeBlocks('A 60-second tour');
  expect(more).toEqual([]);
  const [path, enter, create, follow, allow, kill, ...rest] = tour!.trim().split('\n') as string[];
  expect([path, rest]).toEqual(['export PATH="$PWD/bin:$PATH"', []]);
  await run(put(enter!, { 'svc join ': `${join_command} ` }));
  await run(create!);
  await run(put(follow!, { 'svc logs tidy -f ': `{ svc logs tidy -f ${endAfter('Tidy the notes')} ` }));
  while ((await run('svc reviews ls')).stdout === '') await sleep(100);
  expect((await run(allow!)).stderr).toContain('Add a note to svc-demo.md');
  await run(kill!);
  await plane.ended();
  await plane.start();
  expect((await run('svc agents ls')).stdout).toContain('\ttidy\trunning');
});

test('the tutorials on commands and on the API work as written', async () => {
  const { plane, env, run, endAfter, join_command } = await open();
  const [first, second, kill, after, ...more] = await tutorialBlocks('first-agent', 'Run a command');
  const [http, records, ...others] = await tutorialBlocks('scripting-the-api');
  expect([...more, ...others]).toEqual([]);

  const hello = await run(
    put(first!, {
      'export PATH="$PWD/bin:$PATH"': '',
      'svc join ': `${join_command} `,
    }),
  );
  expect(hello.stdout).toBe('tick 1\ntick 2\ntick 3\n');

  const signal = join(plane.folder, 'go-on');
  const job = `seq -f "line %g" 100; until [ -e ${signal} ]; do sleep 0.05; done; seq -f "line %g" 101 200`;
  const check = await run(
    put(second!, {
      'npm ci && npm run check': job,
      'svc logs check -f ': `{ svc logs check -f ${endAfter('line 1')} `,
    }),
  );
  expect(check.stdout).toContain('\tcheck\trunning (working)\tmain\t');
  expect(check.stdout).toContain('line 1\n');

  const { pid } = plane;
  expect((await run(put(kill!, { 'npm start': '' }))).stderr).toBe(`stopped (pid ${pid})\n`);
  await plane.ended();
  await plane.start(env);
  await writeFile(signal, '');
  await run('svc agents wait check');
  // The second run lasts until the tutorial stops it.
  await rm(signal);
  const then = await run(put(after!, { 'svc agents output check > output.txt': 'svc agents output check' }));
  const lines = Array.from({ length: 200 }, (_, i) => `line ${i + 1}\n`).join('');
  expect(then.stdout.slice(0, lines.length)).toBe(lines);
  expect(then.stdout).toContain('untracked\t1\t0\tdone.txt\n');
  expect(then.stderr).toMatch(/^deleted agt_\w+\nkept .*: untracked files$/m);

  const output = await run(
    put(`${http}${records}`, {
      'http://127.0.0.1:8080': plane.url,
      'curl -N': '{ curl -sN',
      '# Ctrl-C': endAfter('tick 3'),
    }),
  );
  expect(output.stdout).toContain('"name":"hello"');
  expect(output.stdout).toContain('"data":"tick 3\\n"');
  expect(JSON.parse(output.stdout.trim().split('\n').at(-1)!)).toMatchObject({ name: 'hello' });
});
