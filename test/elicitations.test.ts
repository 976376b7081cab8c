/** Elicitations in the real program: the agent gets exactly one answer, whenever the plane is killed. */
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test, vi } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { Client } from '../src/client/client.ts';
import { Conversation } from '../src/testing/conversation.ts';
import { firstOf, longTest } from '../src/testing/long.ts';
import type { TestPlane } from '../src/testing/plane.ts';
import { restartOnExit } from '../src/testing/revive.ts';
import { sharedPlane } from '../src/testing/shared-plane.ts';

const AGENT = fileURLToPath(new URL('../src/testing/acp-agent.ts', import.meta.url));
const content = { name: 'v1', port: 8080, region: 'eu', checks: ['test'] };
const SOON = { timeout: 20_000 };
const ANSWERED = `answered: ${JSON.stringify({ action: 'accept', content })}`;

const share = sharedPlane();
let plane: TestPlane;
let opened: Conversation | undefined;
afterEach(async () => {
  await opened?.expectSameState();
  await opened?.close();
  opened = undefined;
});

async function begin(params?: object, client?: Client): Promise<Conversation> {
  const argv = [process.execPath, AGENT, 'elicits', ...(params ? [JSON.stringify(params)] : [])];
  opened = await Conversation.start(plane, argv, { prompt: 'Deploy it.', ...(client && { client }) });
  return opened;
}

async function expectAnsweredOnce(conversation: Conversation): Promise<void> {
  await conversation.untilIdle();
  for (;;) {
    const [elicitation, ...others] = await conversation.elicitations();
    expect(others).toEqual([]);
    expect(elicitation).toMatchObject({ status: 'accepted', answered_by: 'ana' });
    if (elicitation!.delivery !== 'queued') {
      expect(elicitation!.delivery).toBe('written');
      break;
    }
    await sleep(20);
  }
  await vi.waitFor(() => expect(conversation.text).toBe(ANSWERED), SOON);
}

test('the agent gets the values that a user enters, and the audit log names only the fields', async () => {
  plane = await share();
  const conversation = await begin();
  const { id } = await conversation.pendingElicitation();
  expect(await conversation.get()).toMatchObject({ activity: 'needs_you', pending_elicitations: 1 });
  await expect(
    conversation.respondElicitation(id, { action: 'accept', content: { ...content, port: 'many' } }),
  ).rejects.toMatchObject({ kind: 'invalid', message: 'content.port must be a number' });
  await plane.client.call('respondElicitation', {
    params: { elicitation_id: id },
    body: { action: 'accept', content },
  });
  await expectAnsweredOnce(conversation);
  const audit = JSON.stringify(await plane.client.call('listAudit', { query: { limit: '200' } as never }));
  expect(audit).toContain('"fields":["name","port","region","checks"]');
  expect(audit).not.toContain('8080');
});

/** Counts begin at the plane's start: stdin frame 3 is the prompt, and 4 the answer. */
const KILLED = firstOf(1, [
  ['after the answer is committed, before it is written', 'elicitation_answered'],
  ['after the request is stored', 'acp_frames_committed@3'],
  ['right after the answer reaches the agent', 'stdin_written@4'],
] as const);

test.each(KILLED)('a plane that is killed %s (%s) delivers one answer', async (_when, point) => {
  plane = await share();
  await plane.kill('SIGTERM');
  const [name, n] = point.split('@');
  await plane.start({ SVC_FAILPOINT: `${name}:kill${n === undefined ? '' : `@${n}`}` });
  const stopReviving = restartOnExit(plane);
  const conversation = await begin();
  const { id } = await conversation.pendingElicitation();
  await conversation.respondElicitation(id, { action: 'accept', content });
  await expectAnsweredOnce(conversation);
  expect(await stopReviving()).toBe(1);
});

longTest('a pending form survives kills of the plane', async () => {
  plane = await share();
  const conversation = await begin();
  const { id } = await conversation.pendingElicitation();
  for (let kill = 0; kill < 2; kill++) {
    await plane.kill();
    await plane.start();
    expect(await conversation.pendingElicitation()).toMatchObject({ id, status: 'pending' });
  }
  await conversation.respondElicitation(id, { action: 'accept', content });
  await expectAnsweredOnce(conversation);
});

test('one of fifty concurrent answers by two users succeeds, and the others name its author', async () => {
  plane = await share();
  const credentials = { username: 'ben', password: 'staple battery correct' };
  await plane.client.call('createUser', { body: { ...credentials, role: 'user' } });
  const { token } = await plane.client.call('login', { body: credentials });
  const ben = new Client({ url: plane.url, token });
  const conversation = await begin({ mode: 'url', url: 'https://example.org', elicitationId: 'e' }, ben);
  const { id: elicitation_id } = await conversation.pendingElicitation();
  const answers = Array.from({ length: 50 }, (_, n) =>
    [ben, plane.client][n % 2]!.call('respondElicitation', {
      params: { elicitation_id },
      body: { action: 'accept' },
    }),
  );
  const settled = await Promise.allSettled(answers);
  const won = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  expect(won).toHaveLength(1);
  const message = `elicitation is already accepted by ${won[0]!.answered_by}`;
  const lost = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  expect(lost).toMatchObject(Array(49).fill({ kind: 'conflict', message }));
  await conversation.untilIdle();
  await vi.waitFor(() => expect(conversation.text).toBe('answered: {"action":"accept"}'), SOON);
  expect(await conversation.elicitations()).toMatchObject([{ completed_at: expect.any(String) }]);
});
