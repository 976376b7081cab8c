/**
 * Kills the plane at each stage of a turn with a permission review, with the example agent of the ACP SDK. The turn must
 * end without loss.
 */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { Conversation } from '../src/testing/conversation.ts';
import { EXAMPLE_AGENT, expectFullTurn } from '../src/testing/example-agent.ts';
import { firstOf, is_long, longTest } from '../src/testing/long.ts';
import type { TestPlane } from '../src/testing/plane.ts';
import { restartOnExit } from '../src/testing/revive.ts';
import { sharedPlane } from '../src/testing/shared-plane.ts';

const share = sharedPlane();
let plane: TestPlane;
let conversation: Conversation | undefined;
afterEach(async () => {
  await conversation?.close();
  conversation = undefined;
});

/** Runs a turn from the agent's start to its end, with a test's own kills in `between`. Returns the number of restarts. */
async function wholeTurn(between: { onRequest?: () => Promise<void>; begun?: () => Promise<void> } = {}) {
  const stopReviving = restartOnExit(plane);
  conversation = await Conversation.start(plane, EXAMPLE_AGENT, { prompt: 'Change the configuration.' });
  await between.begun?.();
  const [review] = await conversation.pending();
  await between.onRequest?.();
  const answered = await conversation.respond(review!.id, { decision: 'allow' });
  expect(answered).toMatchObject({ status: 'answered', option_id: 'allow', answered_by: 'ana' });
  await conversation.untilIdle();
  return stopReviving();
}

longTest('a turn with a permission review is complete', async () => {
  plane = await share();
  await wholeTurn();
  await expectFullTurn(conversation!);
});

/** Counts begin at the plane's start: stdin frame 2 opens the session, 3 is the prompt, and 4 the answer. */
const KILLED = firstOf(2, [
  ['in the middle of the turn', 'acp_frames_committed@4'],
  ['after the answer is committed, before it is written', 'review_answered'],
  ['right after a commit', 'committed@18'],
  ['while the session opens', 'stdin_written@2'],
  ['before the agent is initialized', 'stdin_written@1'],
  ['after the agent is initialized, before it gets the session request', 'acp_frames_committed@1'],
  ['after the session opens, before the prompt reaches the agent', 'acp_frames_committed@2'],
  ['right after the prompt reaches the agent', 'stdin_written@3'],
  ['right after the answer reaches the agent', 'stdin_written@4'],
  ['at a commit', 'commit@12'],
] as const);

test.each(KILLED)('a plane that is killed %s (%s) resumes the turn without loss', async (_when, point) => {
  plane = await share();
  await plane.kill('SIGTERM');
  const [name, n] = point.split('@');
  await plane.start({ SVC_FAILPOINT: `${name}:kill${n === undefined ? '' : `@${n}`}` });
  expect(await wholeTurn()).toBe(1);
  await expectFullTurn(conversation!);
});

test('a plane finds a permission request that arrived while it was down', async () => {
  plane = await share();
  await wholeTurn({
    begun: async () => {
      await conversation!.event(({ method }) => method === 'session/update');
      const { session_id } = await conversation!.get();
      const spool = join(plane.data_dir, 'sessions', session_id!, 'out');
      await plane.kill();
      while (!(await readFile(spool, 'utf8')).includes('request_permission')) await sleep(20);
    },
  });
  await expectFullTurn(conversation!);
});

test('a pending review survives kills of the plane', async () => {
  plane = await share();
  await wholeTurn({
    onRequest: async () => {
      for (let kill = 0; kill < (is_long ? 3 : 1); kill++) {
        await plane.kill();
        const [review] = await conversation!.pending();
        expect(review).toMatchObject({ status: 'pending', expires_at: null });
      }
    },
  });
  await plane.kill();
  await plane.start();
  await expectFullTurn(conversation!);
});

longTest('a turn that ends while the plane is down is recorded after its restart', async () => {
  plane = await share();
  conversation = await Conversation.start(plane, EXAMPLE_AGENT, { prompt: 'Change the configuration.' });
  const [review] = await conversation.pending();
  const { session_id } = await conversation.get();
  await plane.kill();
  await plane.start({ SVC_FAILPOINT: 'stdin_written:kill' });
  const answering = conversation.respond(review!.id, { decision: 'allow' });
  await plane.ended();
  const spool = join(plane.data_dir, 'sessions', session_id!, 'out');
  while (!(await readFile(spool, 'utf8')).includes('end_turn')) await sleep(20);
  await plane.start();
  await answering;
  await conversation.untilIdle();
  await expectFullTurn(conversation!);
});

longTest('sub-agents and their requests survive a kill of the plane', async () => {
  plane = await share();
  const scripted = fileURLToPath(new URL('../src/testing/acp-agent.ts', import.meta.url));
  conversation = await Conversation.start(plane, [process.execPath, scripted, 'subagents'], {
    prompt: 'Go.',
  });
  const [asked] = await conversation.pending();
  await plane.kill('SIGKILL');
  await plane.start();
  const [review] = await conversation.pending();
  expect(review).toEqual(asked);
  expect(review!.subagent).toEqual({ id: 'child-1', name: 'explorer', unknown_session: false });
  await conversation.respond(review!.id, { decision: 'allow' });
  await conversation.untilIdle();
  // The stream can lag behind the record.
  await expect.poll(() => conversation!.text).toMatch(/answered: yes-once$/);
  const config = await plane.client.call('getAgentConfig', { params: { agent_id: conversation.agent_id } });
  expect(config.subagents).toMatchObject([
    { id: 'child-1', status: 'idle', stop_reason: 'end_turn' },
    { id: 'child-2', parent_id: 'child-1' },
  ]);
  await conversation.expectSameState();
});
