import { mkdir, mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { writeChapter } from '../../bench/chapter.ts';
import { sleep } from '../../src/base/async.ts';
import type { EventRecord } from '../../src/core/event.ts';
import { findPreset } from '../../src/features/presets/rules/catalog.ts';
import type { Review } from '../../src/features/reviews/rules.ts';
import { TestPlane } from '../../src/testing/plane.ts';
import {
  installAgent,
  NotInRegistry,
  type RealAgent,
  type RealAgentName,
  realAgents,
} from '../../src/testing/real-agents.ts';
import { makeRepository } from '../../src/testing/repository.ts';
import { sandboxMissing } from '../../src/testing/sandbox.ts';
import { examineAgent } from '../../src/tools/agent-doctor/doctor.ts';
import { modelSettingsFor } from '../../src/tools/agent-doctor/model/agent-settings.ts';
import { openModelServer } from '../../src/tools/agent-doctor/model/server.ts';
import type { Report } from '../../src/tools/agent-doctor/report.ts';
import versions from './versions.json' with { type: 'json' };

interface Expected {
  /** Checks that are known not to be `ok` for the pinned releases. */
  others: Record<string, string>;
  /** Checks whose grade depends on the moment of the KILL. */
  varies?: string[];
  options: { optionId: string; kind: string }[];
}

/** For every agent, it depends on the moment of the KILL whether a process is left behind. */
const VARIES = 'orphans after KILL';

const codex = ['allow_once:allow_once', 'accept_execpolicy_amendment:allow_always', 'cancel:reject_once'];
const gemini = ['proceed_always:allow_always', 'proceed_once:allow_once', 'cancel:reject_once'];
const opencode = ['once:allow_once', 'always:allow_always', 'reject:reject_once'];
const claude = ['allow-once:allow_once', 'allow-with-updates:allow_always', 'reject:reject_once'];

const expected: Record<RealAgentName, Expected> = {
  '@agentclientprotocol/claude-agent-acp': { others: {}, options: claude.map(optionOf) },
  // It has no tool that fetches.
  '@agentclientprotocol/codex-acp': {
    others: { 'permission to fetch': 'skipped' },
    options: codex.map(optionOf),
  },
  '@google/gemini-cli': {
    others: { TERM: 'weak' },
    // It writes its session some time after the turn.
    varies: ['load after KILL'],
    options: gemini.map(optionOf),
  },
  '@opencode/cli': { others: {}, options: opencode.map(optionOf) },
  'opencode-ai': { others: { stdout: 'weak' }, options: opencode.map(optionOf) },
  '@qwen-code/qwen-code': { others: { stdout: 'weak' }, options: gemini.map(optionOf) },
};

function optionOf(text: string): { optionId: string; kind: string } {
  const [optionId = '', kind = ''] = text.split(':');
  return { optionId, kind };
}

interface TableRow {
  agent: string;
  grade: string;
  options: string;
  plane: string;
}
const rows: Record<string, TableRow> = {};

const cases = (Object.keys(versions) as RealAgentName[]).flatMap((name) =>
  versions[name].map((version) => ({ name, version, preset: realAgents[name] })),
);

afterAll(async () => {
  const cells = Object.values(rows).map((row) => `| ${Object.values(row).join(' | ')} |`);
  await writeChapter('real agents', `${ABOUT}\n\n${HEAD}\n${cells.join('\n')}`);
});
const ABOUT =
  '`npm run test:agents` writes this section. It installs real agents with npm and tests them against the scripted model: ' +
  '`svc agents doctor`, and a turn with a permission request through the HTTP API, with the plane killed (SIGKILL) while the ' +
  'request is pending.';
const HEAD =
  '| agent | doctor | options of the permission request | a turn through the plane |\n| --- | --- | --- | --- |';

for (const { name, version, preset } of cases) {
  const { others, varies, options } = expected[name];
  const key = `${name} ${version}`;
  describe(key, () => {
    let agent: RealAgent | null = null;
    beforeAll(async () => {
      agent = await installAgent(name, version).catch((error: Error) => {
        if (!(error instanceof NotInRegistry)) throw error;
        rows[key] = { agent: key, grade: 'not in the registry', options: '', plane: '' };
        return null;
      });
    });
    afterAll(() => agent?.remove());

    test('the agent doctor finds that it asks before it acts, from its preset alone', async ({ skip }) => {
      if (!agent) return skip('the registry does not have it');
      const { argv, env } = agent;
      const signal = new AbortController().signal;
      const report = await examineAgent({ argv, env, preset: findPreset(preset), scripted: true, signal });
      console.log(table(report));
      rows[key] = { ...doctored(report), plane: 'did not end' };
      expect(report.known_as).toBe(preset);
      expect(gradesOf(report, varies)).toEqual(others);
      expect(report.checks.find((check) => check.name === 'permission')!.facts).toMatchObject({ options });
    });

    test('it completes a turn with a permission review through the HTTP API, even if the plane is killed', async ({
      skip,
    }) => {
      if (!agent) return skip('the registry does not have it');
      const plane = await TestPlane.open({ env: { PATH: agent.env.PATH! } });
      onTestFinished(() => plane.close());
      const home = await realpath(await mkdtemp(join(tmpdir(), 'svc-home-')));
      onTestFinished(() => rm(home, { recursive: true, force: true, maxRetries: 5 }));
      const repo = makeRepository(join(plane.work, 'repo'), { 'README.md': 'hello\n' });
      const model = await openModelServer(repo);
      onTestFinished(() => model.close());
      const settings = modelSettingsFor(preset, model.url);
      for (const [path, text] of Object.entries(settings.files)) {
        await mkdir(dirname(join(home, path)), { recursive: true });
        await writeFile(join(home, path), text);
      }
      const { id } = await plane.client.call('createAgent', {
        body: {
          name: preset,
          argv: agent.argv,
          preset,
          workdir: repo,
          env: { ...homeEnv(home), ...settings.env },
          prompt: PROMPT,
          start: true,
        },
      });
      const asked_at = performance.now();
      const review = await questionOf(plane, id);
      expect(review.options.map(({ option_id, kind }) => ({ optionId: option_id, kind }))).toEqual(options);
      expect(await files(repo)).toEqual(['README.md']);
      const to_question_ms = performance.now() - asked_at;
      await plane.kill();
      await plane.start();
      const answered = { params: { review_id: review.id }, body: { decision: 'allow' as const } };
      expect(await plane.client.call('respondReview', answered)).toMatchObject({ decision: 'allow' });
      const answered_at = performance.now();
      expect((await endOfTurn(plane, id)).payload).toMatchObject({ result: { stopReason: 'end_turn' } });
      const to_end_ms = performance.now() - answered_at;
      expect(await files(repo)).toHaveLength(2);
      expect(await plane.get(id)).toMatchObject({ activity: 'idle', pending_reviews: 0, asks: 'asks' });
      await plane.client.call('stopAgent', { params: { agent_id: id }, body: { grace_seconds: 5 } });
      rows[key]!.plane =
        `${seconds(to_question_ms)} to the request; plane killed and restarted; ${seconds(to_end_ms)} from the answer to \`end_turn\``;
    });

    test('it starts in a sandbox, asks, and writes into its worktree', async ({ skip }) => {
      if (!agent) return skip('the registry does not have it');
      const missing = sandboxMissing();
      if (missing !== null) return skip(`needs ${missing}`);
      const base = await realpath(await mkdtemp('/srv/svc-real-agent-'));
      onTestFinished(() => rm(base, { recursive: true, force: true, maxRetries: 5 }));
      const home = join(base, 'home');
      await mkdir(home);
      const sandbox = {
        HOME: home,
        PATH: agent.env.PATH!,
        SVC_AGENTS_SANDBOX: 'bwrap',
        SVC_AGENTS_SANDBOX_READ: agent.folder,
        SVC_WORKTREE_REPO_ROOTS: base,
      };
      const plane = await TestPlane.open({ base, env: sandbox });
      onTestFinished(() => plane.close());
      const repo = makeRepository(join(base, 'repo'), { 'README.md': 'hello\n' });
      const tree = join(plane.work, 'tree');
      const model = await openModelServer(tree);
      onTestFinished(() => model.close());
      const settings = modelSettingsFor(preset, model.url);
      // The preset's own folders are kept from one agent of a user to the next, so one agent can set up the others.
      const writes = Object.entries(settings.files).map(
        ([path, text]) => `mkdir -p "$HOME/${dirname(path)}" && printf %s '${text}' >"$HOME/${path}"`,
      );
      const setup = await plane.client.call('createAgent', {
        body: {
          ...{ name: 'setup', preset, protocol: 'plain', workdir: plane.work, start: true },
          command: [...writes, 'true'].join(' && '),
        },
      });
      expect(await plane.finished(setup.id)).toMatchObject({ exit_code: 0 });
      const { id } = await plane.client.call('createAgent', {
        body: {
          ...{ name: preset, argv: agent.argv, preset, env: settings.env, prompt: PROMPT, start: true },
          ...{ worktree_mode: 'create_worktree', worktree_repo: repo, workdir: tree },
        },
      });
      const review = await questionOf(plane, id);
      expect(await files(tree)).toEqual(['README.md']);
      const answered = { params: { review_id: review.id }, body: { decision: 'allow' as const } };
      await plane.client.call('respondReview', answered);
      expect((await endOfTurn(plane, id)).payload).toMatchObject({ result: { stopReason: 'end_turn' } });
      expect(await files(tree)).toHaveLength(2);
      await plane.client.call('stopAgent', { params: { agent_id: id }, body: { grace_seconds: 5 } });
    });
  });
}

const PROMPT = 'Write hello into a file.';

/** The first pending review of an agent. */
function questionOf(plane: TestPlane, agent_id: string): Promise<Review> {
  return until(async () => {
    const reviews = await plane.client.call('listReviews', { query: { agent_id, status: 'pending' } });
    return (reviews as Review[])[0];
  });
}

/** The response to the agent's first prompt. */
function endOfTurn(plane: TestPlane, agent_id: string): Promise<EventRecord> {
  return until(async () => {
    const log = await plane.client.call('getLog', {
      params: { agent_id },
      query: { type: 'acp_event' as never },
    });
    return (log as EventRecord[]).find((event) => String(event.response_to).startsWith('prm_'));
  });
}

/** Replaces the folders that the test's plane sets in these variables. */
function homeEnv(home: string): Record<string, string> {
  return { HOME: home, XDG_CONFIG_HOME: join(home, '.config'), XDG_DATA_HOME: join(home, '.local/share') };
}

async function files(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((name) => name !== '.git');
}

async function until<T>(probe: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await probe();
    if (found !== undefined) return found;
    await sleep(100);
  }
}

function doctored({ agent, grade, checks }: Report): Omit<TableRow, 'plane'> {
  const ok = checks.filter((check) => check.grade === 'ok').length;
  const permission = checks.find((check) => check.name === 'permission');
  return {
    agent: `${agent?.name} ${agent?.version}`,
    grade: `${grade}: ${ok} of ${checks.length} checks ok`,
    options: permission?.detail.split(';')[0] ?? '',
  };
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

function gradesOf({ checks }: Report, varies: string[] = []): Record<string, string> {
  const others = checks.filter(
    ({ name, grade }) => grade !== 'ok' && name !== VARIES && !varies.includes(name),
  );
  return Object.fromEntries(others.map(({ name, grade }) => [name, grade]));
}

function table({ agent, checks, grade }: Report): string {
  const rows = checks.map(({ name, grade, duration_ms, detail }) =>
    [name.padEnd(18), grade.padEnd(7), String(duration_ms ?? '').padStart(6), detail].join('  '),
  );
  return [`${agent?.name} ${agent?.version}: ${grade}`, ...rows].join('\n');
}
