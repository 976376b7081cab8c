import { mkdir, mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { writeChapter } from '../../bench/chapter.ts';
import { examineAgent } from '../../src/agent-doctor/doctor.ts';
import { dressFor } from '../../src/agent-doctor/known.ts';
import { openModelServer } from '../../src/agent-doctor/model/server.ts';
import type { Report } from '../../src/agent-doctor/report.ts';
import { sleep } from '../../src/base/async.ts';
import type { EventRecord } from '../../src/domain/event.ts';
import { findPreset } from '../../src/domain/presets.ts';
import type { Review } from '../../src/domain/review.ts';
import { TestPlane } from '../../src/testing/plane.ts';
import {
  installAgent,
  NotInRegistry,
  type RealAgent,
  type RealAgentName,
  realAgents,
} from '../../src/testing/real-agents.ts';
import { makeRepository } from '../../src/testing/repository.ts';
import versions from './versions.json' with { type: 'json' };

interface Expected {
  /** Checks that are not `ok`, as the pinned releases are known to be. */
  others: Record<string, string>;
  options: { optionId: string; kind: string }[];
}

/** Whether a process is left behind depends on when KILL comes. */
const UNSTEADY = 'orphans after KILL';

const codex = ['allow_once:allow_once', 'accept_execpolicy_amendment:allow_always', 'cancel:reject_once'];
const gemini = ['proceed_always:allow_always', 'proceed_once:allow_once', 'cancel:reject_once'];
const opencode = ['once:allow_once', 'always:allow_always', 'reject:reject_once'];
const claude = ['allow-once:allow_once', 'allow-with-updates:allow_always', 'reject:reject_once'];

const expected: Record<RealAgentName, Expected> = {
  '@agentclientprotocol/claude-agent-acp': { others: {}, options: claude.map(optionOf) },
  // It offers no tool that fetches.
  '@agentclientprotocol/codex-acp': {
    others: { 'permission to fetch': 'skipped' },
    options: codex.map(optionOf),
  },
  '@google/gemini-cli': {
    others: { 'load after KILL': 'failed', TERM: 'weak' },
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
  'Made by `npm run test:agents`: real agents, installed by npm for it, against the scripted model. What `svc agents doctor` says of ' +
  'them, and a turn with a permission through the HTTP API, with the plane killed (SIGKILL) while the question waits.';
const HEAD =
  '| agent | doctor | options of the permission | a turn through the plane |\n| --- | --- | --- | --- |';

for (const { name, version, preset } of cases) {
  const { others, options } = expected[name];
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

    test('the doctor finds that it asks before it acts, by its preset alone', async ({ skip }) => {
      if (!agent) return skip('the registry does not have it');
      const { argv, env } = agent;
      const signal = new AbortController().signal;
      const report = await examineAgent({ argv, env, preset: findPreset(preset), scripted: true, signal });
      console.log(table(report));
      rows[key] = { ...doctored(report), plane: 'did not end' };
      expect(report.known_as).toBe(preset);
      expect(gradesOf(report)).toEqual(others);
      expect(report.checks.find((check) => check.name === 'permission')!.facts).toMatchObject({ options });
    });

    test('it completes a turn with a permission, driven through the HTTP API, over a kill of the plane', async ({
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
      const dress = dressFor(preset, model.url);
      for (const [path, text] of Object.entries(dress.files)) {
        await mkdir(dirname(join(home, path)), { recursive: true });
        await writeFile(join(home, path), text);
      }
      const { id } = await plane.client.call('createAgent', {
        body: {
          name: preset,
          argv: agent.argv,
          preset,
          workdir: repo,
          env: { ...homeEnv(home), ...dress.env },
          prompt: 'Write hello into a file.',
          start: true,
        },
      });
      const asked_at = performance.now();
      const review = await until(async () => {
        const reviews = await plane.client.call('listReviews', {
          query: { agent_id: id, status: 'pending' },
        });
        return (reviews as Review[])[0];
      });
      expect(review.options.map(({ option_id, kind }) => ({ optionId: option_id, kind }))).toEqual(options);
      expect(await files(repo)).toEqual(['README.md']);
      const to_question_ms = performance.now() - asked_at;
      await plane.kill();
      await plane.start();
      const answered = { params: { review_id: review.id }, body: { decision: 'allow' as const } };
      expect(await plane.client.call('respondReview', answered)).toMatchObject({ decision: 'allow' });
      const answered_at = performance.now();
      const ended = await until(async () => {
        const log = await plane.client.call('getLog', {
          params: { agent_id: id },
          query: { type: 'acp_event' as never },
        });
        return (log as EventRecord[]).find((event) => String(event.response_to).startsWith('prm_'));
      });
      expect(ended.payload).toMatchObject({ result: { stopReason: 'end_turn' } });
      const to_end_ms = performance.now() - answered_at;
      expect(await files(repo)).toHaveLength(2);
      expect(await plane.get(id)).toMatchObject({ activity: 'idle', pending_reviews: 0, asks: 'asks' });
      await plane.client.call('stopAgent', { params: { agent_id: id }, body: { grace_seconds: 5 } });
      rows[key]!.plane =
        `${seconds(to_question_ms)} to the question, the plane killed and started, ${seconds(to_end_ms)} from the answer to \`end_turn\``;
    });
  });
}

/** The plane of the test has folders of its own in these. */
function homeEnv(home: string): Record<string, string> {
  return { HOME: home, XDG_CONFIG_HOME: join(home, '.config'), XDG_DATA_HOME: join(home, '.local/share') };
}

async function files(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((name) => name !== '.git');
}

async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await look();
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

function gradesOf({ checks }: Report): Record<string, string> {
  const others = checks.filter(({ name, grade }) => grade !== 'ok' && name !== UNSTEADY);
  return Object.fromEntries(others.map(({ name, grade }) => [name, grade]));
}

function table({ agent, checks, grade }: Report): string {
  const rows = checks.map(({ name, grade, duration_ms, detail }) =>
    [name.padEnd(18), grade.padEnd(7), String(duration_ms ?? '').padStart(6), detail].join('  '),
  );
  return [`${agent?.name} ${agent?.version}: ${grade}`, ...rows].join('\n');
}
