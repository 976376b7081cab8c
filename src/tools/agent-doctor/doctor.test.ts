import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { findPreset } from '../../features/presets/rules/catalog.ts';
import type { Preset } from '../../features/presets/rules/preset.ts';
import { examineAgent } from './doctor.ts';
import type { Report } from './report.ts';

const child = fileURLToPath(new URL('./agent-child.ts', import.meta.url));
const example = fileURLToPath(
  new URL('../../../node_modules/acp-example/dist/examples/agent.js', import.meta.url),
);

async function examine(
  habits: string[],
  timeout_ms = 30_000,
  mode: string | null = null,
  preset: Preset | null = null,
): Promise<Report> {
  return examineAgent({
    mode,
    preset,
    argv: [process.execPath, child, ...habits],
    env: process.env,
    signal: new AbortController().signal,
    timeout_ms,
  });
}

/** Every finding as `grade` or, where a test needs it, with its text. */
function grades({ checks }: Report): Record<string, string> {
  return Object.fromEntries(checks.map(({ name, grade }) => [name, grade]));
}

function findingOf(report: Report, name: string): string {
  const { grade, detail } = report.checks.find((check) => check.name === name)!;
  return `${grade}: ${detail}`;
}

const sound = {
  start: 'ok',
  session: 'ok',
  'sign-in': 'ok',
  turn: 'ok',
  permission: 'ok',
  cancel: 'ok',
  'second prompt': 'ok',
  'permission to run': 'skipped',
  'permission to fetch': 'skipped',
  'orphans after KILL': 'ok',
  'load after KILL': 'ok',
  TERM: 'ok',
  'orphans after TERM': 'ok',
  stdout: 'ok',
};

test.concurrent('an agent without defects passes every check', async () => {
  const report = await examine([]);
  expect(grades(report)).toEqual(sound);
  expect(report).toMatchObject({ grade: 'ok', agent: { name: 'child', version: '1' }, model_requests: null });
  expect(findingOf(report, 'permission')).toBe(
    'ok: yes (allow_once), ever (allow_always), never (reject_once); chosen: yes',
  );
  expect(findingOf(report, 'cancel')).toMatch(/^ok: cancelled at once, \d+ ms$/);
  expect(findingOf(report, 'load after KILL')).toBe('ok: load: context kept, nothing is replayed');
  const permission = report.checks.find(({ name }) => name === 'permission')!;
  expect(permission.facts).toMatchObject({
    chosen: 'yes',
    options: [{ optionId: 'yes', name: 'Yes' }, {}, {}],
  });
});

// This agent pauses for a second after each of its steps.
const unhurried = { timeout: 90_000 };
test.concurrent(
  "the SDK's example agent works, and says end_turn for a cancelled turn",
  unhurried,
  async () => {
    const argv: [string, ...string[]] = [process.execPath, example];
    const report = await examineAgent({ argv, env: process.env, signal: new AbortController().signal });
    expect(grades(report)).toEqual({ ...sound, cancel: 'weak', 'load after KILL': 'skipped' });
    expect(findingOf(report, 'turn')).toBe(
      'ok: end_turn; 3 agent_message_chunk, 2 tool_call, 2 tool_call_update',
    );
    expect(findingOf(report, 'cancel')).toMatch(
      /^weak: end_turn after the request was answered, \d+ ms; should/,
    );
  },
);

test.concurrent('an agent that ignores TERM is killed, and graded weak', async () => {
  const report = await examine(['stubborn']);
  expect(grades(report)).toEqual({ ...sound, TERM: 'weak' });
  expect(findingOf(report, 'TERM')).toBe('weak: still running after 5 s: needs KILL');
});

test.concurrent('finds and ends processes that an agent left behind, in any session', async () => {
  const report = await examine(['orphans']);
  const left = process.platform === 'linux' ? 2 : 1;
  expect(grades(report)).toEqual({ ...sound, 'orphans after KILL': 'weak', 'orphans after TERM': 'weak' });
  for (const name of ['orphans after KILL', 'orphans after TERM']) {
    expect(findingOf(report, name)).toMatch(
      new RegExp(`^weak: ${left} left behind, ended by the doctor: \\d+ sleep 600`),
    );
    const { orphans } = report.checks.find((check) => check.name === name)!.facts as {
      orphans: { pid: number }[];
    };
    expect(orphans).toHaveLength(left);
  }
});

test.concurrent('an agent that does not answer fails its start, and no other check runs', async () => {
  const report = await examine(['deaf'], 1_000);
  expect(findingOf(report, 'start')).toBe('failed: no answer within 1 s');
  const { start, 'orphans after KILL': orphans, ...others } = grades(report);
  expect([start, orphans, report.grade]).toEqual(['failed', 'ok', 'failed']);
  expect(new Set(Object.values(others))).toEqual(new Set(['skipped']));
});

test.concurrent('reports a program that cannot be started', async () => {
  const signal = new AbortController().signal;
  const report = await examineAgent({ argv: ['/nowhere/agent'], env: process.env, signal });
  expect(findingOf(report, 'start')).toBe('failed: spawn /nowhere/agent ENOENT');
});

test.concurrent('reports another version of ACP', async () => {
  const report = await examine(['v2']);
  expect(findingOf(report, 'start')).toBe('failed: speaks ACP version 2, not 1');
  expect(grades(report).session).toBe('skipped');
});

test.concurrent('reports a required sign-in with its methods', async () => {
  const report = await examine(['signed-out']);
  expect(findingOf(report, 'sign-in')).toBe("failed: needed, with the agent's own program (methods: A key)");
  expect(grades(report).session).toBe('skipped');
});

test.concurrent('sets a mode with the modes of a session, or with the option that represents them', async () => {
  const wanted: [string[], string, string][] = [
    [['modes'], 'plan', 'ok: mode ask of ask, plan; set to plan'],
    [['modes'], 'ask', 'ok: mode ask of ask, plan'],
    [['modes'], 'auto', 'weak: mode ask of ask, plan; auto is not offered'],
    [['options'], 'plan', 'ok: no modes; set to plan'],
    [[], 'plan', 'weak: no modes; plan is not offered'],
  ];
  const found = await Promise.all(
    wanted.map(([habits, mode]) => examine([...habits, 'eager'], 30_000, mode)),
  );
  expect(found.map((report) => findingOf(report, 'session'))).toEqual(wanted.map(([, , words]) => words));
});

test.concurrent('reports the last output of an agent that exits during its turn', async () => {
  const report = await examine(['dies']);
  expect(findingOf(report, 'turn')).toBe('failed: it exited (exit code 3); it wrote: out of luck\x1b[2J');
  expect(report.stderr).toContain('out of luck');
  expect(grades(report)).toMatchObject({ cancel: 'skipped', 'orphans after KILL': 'ok' });
});

test.concurrent('a missing permission request, or one without a choice, is a finding', async () => {
  const [eager, no_options] = await Promise.all([examine(['eager']), examine(['no-options'])]);
  expect(findingOf(eager, 'permission')).toBe('weak: wrote eager.txt without asking');
  expect(findingOf(eager, 'cancel')).toBe('skipped: it did not ask this time (end_turn)');
  expect(findingOf(no_options, 'permission')).toBe('failed: no option allows it: no options');
});

const promises: Preset = {
  ...findPreset('acp')!,
  permission: { guarantee: 'ask', apply: [{ session_mode: 'plan' }], acting_modes: [], note: '' },
};
const BROKEN = ', although its preset guarantees that it asks';

test.concurrent('an agent whose preset promises to ask, and that asks, passes every check', async () => {
  const report = await examine(['modes'], 30_000, null, promises);
  expect(grades(report)).toEqual({ ...sound, 'permission to run': 'ok', 'permission to fetch': 'ok' });
  expect(findingOf(report, 'session')).toBe('ok: mode ask of ask, plan; set to plan');
  expect(findingOf(report, 'permission to run')).toBe('ok: asks first: Write');
});

test.concurrent('an agent that writes, runs or fetches without asking fails if its preset promises to ask', async () => {
  const [writes, runs, fetches] = await Promise.all(
    ['eager', 'runs', 'fetches'].map((habit) => examine(['modes', habit], 30_000, null, promises)),
  );
  expect(findingOf(writes!, 'permission')).toBe(`failed: wrote eager.txt without asking${BROKEN}`);
  expect(findingOf(runs!, 'permission to run')).toBe(`failed: acted without asking: Just execute${BROKEN}`);
  expect(findingOf(fetches!, 'permission to fetch')).toBe(
    `failed: acted without asking: Just fetch${BROKEN}`,
  );
  expect([writes, runs, fetches].map((report) => report!.grade)).toEqual(['failed', 'failed', 'failed']);
});

test.concurrent('a mode that the user chose promises nothing', async () => {
  const report = await examine(['modes', 'eager'], 30_000, 'ask', promises);
  expect(findingOf(report, 'permission')).toBe('weak: wrote eager.txt without asking');
});

test.concurrent('distinguishes a cancelled turn that waits, ends wrongly or does not end', async () => {
  const [waits, wrong, hangs] = await Promise.all([
    examine(['waits']),
    examine(['wrong-end']),
    examine(['hangs'], 10_000),
  ]);
  expect(findingOf(waits, 'cancel')).toMatch(/^ok: cancelled after the request was answered, \d+ ms$/);
  expect(findingOf(wrong, 'cancel')).toMatch(/^weak: end_turn after .*; should be cancelled$/);
  expect(findingOf(hangs, 'cancel')).toBe('failed: no answer within 10 s');
  expect(grades(hangs)['second prompt']).toBe('skipped');
});

test.concurrent('a session that loads without its context is weak', async () => {
  expect(findingOf(await examine(['forgets']), 'load after KILL')).toBe(
    'weak: load: opened, nothing is replayed, but the reply shows that the context is lost',
  );
});

test.concurrent('counts other output, and requests beyond the offered capabilities', async () => {
  const report = await examine(['noisy']);
  expect(findingOf(report, 'stdout')).toMatch(
    /^weak: \d+ messages, the longest line 1100\d\d\d bytes; 2 lines that are not messages \("Welcome!"\); \d responses to unknown requests; \d lines of more than 1 MiB; asks for fs\/read_text_file, which is not offered$/,
  );
});

test.concurrent('an aborted examination rejects with the reason', async () => {
  const controller = new AbortController();
  const examined = examineAgent({
    argv: [process.execPath, child, 'deaf'],
    env: process.env,
    signal: controller.signal,
    onCheck: () => controller.abort(new Error('enough')),
  });
  await expect(examined).rejects.toThrow('enough');
});
