import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { run } from '../testing/cli.ts';

const child = fileURLToPath(new URL('../tools/agent-doctor/agent-child.ts', import.meta.url));

function doctor(options: string[], habits: string[], tty = false) {
  return run(['agents', 'doctor', ...options, '--', process.execPath, child, ...habits], {
    home: tmpdir(),
    tty,
  });
}

test.concurrent('prints a table and exits with 0 for a working agent', async () => {
  const { code, stdout, stderr } = await doctor([], []);
  expect([code, stderr]).toEqual([0, '']);
  const rows = stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t'));
  expect(rows.map(([number, name, grade]) => `${number} ${name} ${grade}`)).toEqual([
    '1 start ok',
    '2 session ok',
    '3 sign-in ok',
    '4 turn ok',
    '5 permission ok',
    '6 cancel ok',
    '7 second prompt ok',
    '8 permission to run skipped',
    '9 permission to fetch skipped',
    '10 orphans after KILL ok',
    '11 load after KILL ok',
    '12 TERM ok',
    '13 orphans after TERM ok',
    '14 stdout ok',
    '- total ok',
  ]);
  expect(rows[0]).toEqual(['1', 'start', 'ok', expect.stringMatching(/^\d+\.\d\d s$/), expect.any(String)]);
  expect(rows.at(-1)!.at(-1)).toBe('12 ok, 2 skipped');
});

test.concurrent('prints one object with --json, which includes the requests to the scripted model', async () => {
  const { code, stdout } = await doctor(['--json', '--model', 'scripted', '--agent', 'qwen'], []);
  const report = JSON.parse(stdout);
  expect(code).toBe(0);
  expect(report).toMatchObject({
    grade: 'weak',
    known_as: 'qwen',
    model_requests: [],
    agent: { name: 'child' },
  });
  expect(report.checks.at(-1)).toEqual({
    number: 15,
    name: 'model',
    grade: 'weak',
    detail: 'no request: it did not use the scripted model',
    duration_ms: null,
  });
});

test.concurrent('exits with 1 for a failing agent, and shows its last output without control characters', async () => {
  const { code, stderr } = await doctor([], ['dies'], true);
  expect(code).toBe(1);
  expect(stderr).toContain('stderr of the agent:\nout of luck\\x1b[2J\n');
  expect(stderr).toMatch(/svc: 2 of 14 checks failed\n$/);
});

test.concurrent('an agent that acts without asking fails with its preset, and is weak as a command', async () => {
  expect((await doctor([], ['eager'])).code).toBe(0);
  const { code, stdout } = await doctor(['--preset', 'gemini'], ['eager']);
  expect(code).toBe(1);
  expect(stdout).toContain('wrote eager.txt without asking, although its preset guarantees that it asks');
});

test.concurrent('rejects unknown values', async () => {
  expect(await doctor(['--model', 'gpt'], [])).toMatchObject({
    code: 2,
    stderr: 'svc: --model: must be scripted\n',
  });
  expect((await doctor(['--agent', 'nobody'], [])).stderr).toMatch(
    /^svc: --agent: must be one of claude, codex, /,
  );
  expect((await run(['agents', 'doctor'], { home: tmpdir() })).code).toBe(2);
  expect((await doctor(['--preset', 'plain'], [])).stderr).toBe(
    'svc: --preset: plain is not a preset that speaks ACP\n',
  );
});
