/** The teams in `examples/`, taken by the real program: no model, no network, nothing beside it. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { isRunOver, type Run } from '../src/domain/run.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { makeRepository } from '../src/testing/repository.ts';

let plane: TestPlane;
afterEach(() => plane.close());

/** For agents that call the plane. */
const surface = { SVC_INTERNAL_GRPC_ENABLED: 'true', SVC_INTERNAL_GRPC_LISTEN: '127.0.0.1:0' };

async function begin(example: string, input: Record<string, unknown>) {
  const text = await readFile(new URL(`../examples/${example}.json`, import.meta.url), 'utf8');
  const { client } = plane;
  const { id: team_id } = await client.call('createTeam', { body: JSON.parse(text) });
  const { id: run_id } = await client.call('createRun', { params: { team_id }, body: { input } });
  return { team_id, run_id };
}

/** Runs the example and waits until it is over. */
async function take(example: string, input: Record<string, unknown>): Promise<Run> {
  return untilOver(await begin(example, input));
}

async function untilOver(params: { team_id: string; run_id: string }): Promise<Run> {
  for (;;) {
    const run = await plane.client.call('getRun', { params });
    if (isRunOver(run)) return run;
    await sleep(50);
  }
}

async function stepsOf({ id: run_id, team_id }: Run) {
  const steps = await plane.client.call('listSteps', { params: { team_id, run_id } });
  return Object.fromEntries(steps.map((step) => [step.step_key, step]));
}

test('the pipeline counts and packs a repository, and its report has what every step found', async () => {
  plane = await TestPlane.open();
  const repository = makeRepository(join(plane.folder, 'repo'), { 'a.txt': 'one\ntwo\n', 'b.json': '{}\n' });
  const run = await take('pipeline', { repository });
  expect(run).toMatchObject({ status: 'completed', error: null });
  const { checkout, ...counted } = (run.output as { report: { steps: Record<string, unknown> } }).report
    .steps;
  expect(checkout).toMatchObject({ commit: expect.stringMatching(/^[0-9a-f]{40}$/) });
  expect(counted).toMatchObject({ files: 2, lines: 3, json: 1, package: { size_bytes: expect.any(Number) } });
});

test('the pipeline packs nothing that its checks refuse, and reports all the same', async () => {
  plane = await TestPlane.open();
  const repository = makeRepository(join(plane.folder, 'repo'), { 'a.txt': 'one\n', 'b.json': '{} \n' });
  const run = await take('pipeline', { repository });
  expect(run).toMatchObject({ status: 'failed', error: 'step json failed: exit code 1' });
  const steps = await stepsOf(run);
  expect(steps.json).toMatchObject({ status: 'failed' });
  expect(steps.package).toMatchObject({ status: 'skipped' });
  expect(steps.report).toMatchObject({ status: 'completed', output: { built: false, steps: { files: 2 } } });
});

test('the demo team plans, writes to each other and sums up', async () => {
  plane = await TestPlane.open({ env: surface });
  const run = await take('demo-team', { title: 'Paint the shed' });
  expect(run).toMatchObject({ status: 'completed', attention: null });
  expect(run.output).toMatch(/^2 of 2 steps completed, 2 messages came in\.\n/);
  const ways: string[] = [];
  const listed = plane.client.all('listRunMail', { params: { run_id: run.id } });
  for await (const { from_actor_id, to_actor_id, status } of listed) {
    const [from, to] = [from_actor_id, to_actor_id].map((id) => id.split('@')[0]);
    ways.push(`${from} ${to} ${status}`);
  }
  expect(ways.sort()).toEqual([
    'blue lead acknowledged',
    'lead blue acknowledged',
    'lead red acknowledged',
    'red lead acknowledged',
  ]);
});

test('a run with a human in it waits for a permission, for a word and for a step', async () => {
  plane = await TestPlane.open({ env: surface });
  const { client } = plane;
  const params = await begin('human', {});
  const waitFor = async (step_key: string, status: string) => {
    for (;;) {
      const steps = await client.call('listSteps', { params });
      const step = steps.find((one) => one.step_key === step_key)!;
      if (step.status === status) return step;
      expect(steps.filter((one) => one.status === 'failed')).toEqual([]);
      await sleep(50);
    }
  };
  let review: { id: string } | undefined;
  while (!review) {
    await sleep(50);
    const waiting = client.all('listReviews', { query: { status: 'pending' } });
    review = (await waiting.next()).value || undefined;
  }
  await client.call('respondReview', { params: { review_id: review.id }, body: { decision: 'allow' } });
  const asks = await waitFor('title', 'input_required');
  expect(asks.error_text).toBe('Which title shall it have?');
  await client.call('resumeStep', {
    params: { ...params, step_key: 'title' },
    body: { input: 'Rain, and what comes after' },
  });
  await waitFor('print', 'ready');
  await client.call('completeStep', {
    params: { ...params, step_key: 'print' },
    body: { output: 'Twelve copies' },
  });
  const run = await untilOver(params);
  expect(run).toMatchObject({ status: 'completed', output: { print: 'Twelve copies' } });
  expect((await stepsOf(run)).title!.output).toMatch(/^The answer was “Rain, and what comes after”\. /);
});
