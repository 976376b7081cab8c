/**
 * Random messages of an agent, in any order: each is handled once and in order, the rows stay consistent, and the
 * agent can be stopped.
 */
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { writeMessage } from '../../acp/message.ts';
import { anyMessage } from '../../testing/any-message.ts';
import { ANA, LivesRoom, SOON } from '../../testing/lives.ts';
import { startAcp } from '../../testing/scripted-acp.ts';

test.each([1, 2, 3, 4])('handles four hundred random messages (seed %i)', async (seed) => {
  const room = await LivesRoom.make();
  const { id, acp } = await startAcp(room, { prompt: 'first' });
  const prompts = (await room.prompting.list(ANA, id)).map((prompt) => prompt.id);
  for (let n = 0; n < 20; n++) {
    const { prompt_id } = await room.prompting.prompt(ANA, id, [{ type: 'text', text: `${n}` }], null);
    prompts.push(prompt_id);
  }
  // The ids include those of past and future requests to the agent.
  const own_ids = Array.from({ length: 8 }, (_, n) => `${acp.session_id}.${n + 1}`);
  const message = anyMessage([1, '1', null, ...own_ids, ...prompts]);
  const noise = fc.constantFrom('Loading…\n', '{\n', '\n', '\u0000\n', '[1]\n');
  const line = fc.oneof({ weight: 9, arbitrary: message.map(writeMessage) }, { weight: 1, arbitrary: noise });
  if (seed % 2 === 0) await acp.opens();
  for (const text of fc.sample(line, { seed, numRuns: 400 })) acp.writes(text);
  acp.writes('the last line of all\n');
  await vi.waitFor(async () => {
    expect((await room.events(id)).some(({ data }) => String(data).endsWith('of all\n'))).toBe(true);
  }, SOON);
  for (const review of (await room.reviews.list(ANA, { status: 'pending' }, {})).items) {
    await room.reviews.respond(ANA, review.id, { outcome: 'cancelled' }, null);
  }
  for (const { id: elicitation_id } of (await room.elicitations.list(ANA, { status: 'pending' }, {})).items) {
    await room.elicitations.respond(ANA, elicitation_id, { action: 'cancel' }, null);
  }
  await room.expectTrue(id);
  expect(await room.agents.stop(ANA, id, 0)).toMatchObject({ status: 'cancelled', pending_reviews: 0 });
  await vi.waitFor(async () => {
    expect((await room.prompting.list(ANA, id)).every(({ state }) => state === 'queued')).toBe(true);
  }, SOON);
  await room.end();
});
