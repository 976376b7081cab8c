import { mkdir, mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { writeChapter } from '../../bench/chapter.ts';
import { examineAgent } from '../../src/agent-doctor/doctor.ts';
import { dressFor, usualEnv } from '../../src/agent-doctor/known.ts';
import { openModelServer } from '../../src/agent-doctor/model/server.ts';
import type { Report } from '../../src/agent-doctor/report.ts';
import { sleep } from '../../src/base/async.ts';
import type { EventRecord } from '../../src/domain/event.ts';
import type { Review } from '../../src/domain/review.ts';
import { TestPlane } from '../../src/testing/plane.ts';
import { installAgent, type RealAgent, type RealAgentName } from '../../src/testing/real-agents.ts';
import { makeRepository } from '../../src/testing/repository.ts';

interface Expected {
  /** Checks that are not `ok`, as the release that is installed is known to be. */
  others: Record<string, string>;
  options: { optionId: string; kind: string }[];
}

const expected: Record<RealAgentName, Expected> = {
  qwen: {
    others: {},
    options: [
      { optionId: 'proceed_always', kind: 'allow_always' },
      { optionId: 'proceed_once', kind: 'allow_once' },
      { optionId: 'cancel', kind: 'reject_once' },
    ],
  },
  opencode: {
    others: { stdout: 'weak' },
    options: [
      { optionId: 'once', kind: 'allow_once' },
      { optionId: 'always', kind: 'allow_always' },
      { optionId: 'reject', kind: 'reject_once' },
    ],
  },
};

interface TableRow {
  agent: string;
  grade: string;
  options: string;
  plane: string;
}
const rows: Record<string, TableRow> = {};

afterAll(async () => {
  const cells = Object.values(rows).map((row) => `| ${Object.values(row).join(' | ')} |`);
  await writeChapter('real agents', `${ABOUT}\n\n${HEAD}\n${cells.join('\n')}`);
});
const ABOUT =
  'Made by `npm run test:agents`: real agents, installed by npm for it, against the scripted model. What `svc agents doctor` says of ' +
  'them, and a turn with a permission through the HTTP API, with the plane killed (SIGKILL) while the question waits.';
const HEAD =
  '| agent | doctor | options of the permission | a turn through the plane |\n| --- | --- | --- | --- |';

for (const [name, { others, options }] of Object.entries(expected) as [RealAgentName, Expected][]) {
  describe(name, () => {
    let agent: RealAgent;
    beforeAll(async () => {
      agent = await installAgent(name);
    });
    afterAll(() => agent?.remove());

    test('the doctor finds what is known of it', async () => {
      const { argv, env } = agent;
      const report = await examineAgent({ argv, env, scripted: true, signal: new AbortController().signal });
      console.log(table(report));
      rows[name] = { ...doctored(report), plane: 'did not end' };
      expect(report.known_as).toBe(name);
      expect(gradesOf(report)).toEqual(others);
      expect(report.checks.find((check) => check.name === 'permission')!.facts).toMatchObject({ options });
    });

    test('it completes a turn with a permission, driven through the HTTP API, over a kill of the plane', async () => {
      const plane = await TestPlane.open({ env: { PATH: agent.env.PATH! } });
      onTestFinished(() => plane.close());
      const home = await realpath(await mkdtemp(join(tmpdir(), 'svc-home-')));
      onTestFinished(() => rm(home, { recursive: true, force: true, maxRetries: 5 }));
      const repo = makeRepository(join(plane.work, 'repo'), { 'README.md': 'hello\n' });
      const model = await openModelServer(repo);
      onTestFinished(() => model.close());
      const dress = dressFor(name, model.url);
      for (const [path, text] of Object.entries(dress.files)) {
        await mkdir(dirname(join(home, path)), { recursive: true });
        await writeFile(join(home, path), text);
      }
      const { id } = await plane.client.call('createAgent', {
        body: {
          name,
          argv: agent.argv,
          protocol: 'acp',
          workdir: repo,
          env: { ...usualEnv(name), ...homeEnv(home), ...dress.env },
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
      expect(await plane.get(id)).toMatchObject({ activity: 'idle', pending_reviews: 0 });
      await plane.client.call('stopAgent', { params: { agent_id: id }, body: { grace_seconds: 5 } });
      rows[name]!.plane =
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
  const others = checks.filter(({ grade }) => grade !== 'ok');
  return Object.fromEntries(others.map(({ name, grade }) => [name, grade]));
}

function table({ agent, checks, grade }: Report): string {
  const rows = checks.map(({ name, grade, duration_ms, detail }) =>
    [name.padEnd(18), grade.padEnd(7), String(duration_ms ?? '').padStart(6), detail].join('  '),
  );
  return [`${agent?.name} ${agent?.version}: ${grade}`, ...rows].join('\n');
}
