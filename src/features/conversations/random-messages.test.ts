/**
 * Random messages of an agent, in any order: each is handled once and in order, the rows stay consistent, and the
 * agent can be stopped.
 */
import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';
import { writeMessage } from '../../acp/message.ts';
import { limits } from '../../events/limits.ts';
import { anyMessage } from '../../testing/any-message.ts';
import { ANA, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { startAcp } from '../../testing/scripted-acp.ts';

test.each([1, 2, 3, 4])('handles four hundred random messages (seed %i)', async (seed) => {
  // Each message in its own transaction.
  if (seed > 2) vi.spyOn(limits, 'acp_transaction_ms', 'get').mockReturnValue(0 as never);
  vi.spyOn(limits, 'acp_pause_factor', 'get').mockReturnValue(0 as never);
  onTestFinished(() => void vi.restoreAllMocks());
  const fixture = await FeaturesFixture.make();
  const { id, acp } = await startAcp(fixture, { prompt: 'first' });
  const prompts = (await fixture.prompting.list(ANA, id)).map((prompt) => prompt.id);
  for (let n = 0; n < 20; n++) {
    const { prompt_id } = await fixture.prompting.prompt(ANA, id, [{ type: 'text', text: `${n}` }], null);
    prompts.push(prompt_id);
  }
  // The ids include those of past and future requests to the agent.
  const own_ids = Array.from({ length: 8 }, (_, n) => `${acp.session_id}.${n + 1}`);
  const message = anyMessage([1, '1', null, ...own_ids, ...prompts]);
  const noise = fc.constantFrom('Loading…\n', '{\n', '\n', '\u0000\n', '[1]\n');
  const line = fc.oneof({ weight: 9, arbitrary: message.map(writeMessage) }, { weight: 1, arbitrary: noise });
  if (seed % 2 === 0) await acp.openSession();
  for (const text of fc.sample(line, { seed, numRuns: 400 })) acp.write(text);
  acp.write('the last line of all\n');
  await vi.waitFor(async () => {
    expect((await fixture.events(id)).some(({ data }) => String(data).endsWith('of all\n'))).toBe(true);
  }, SOON);
  for (const review of (await fixture.reviews.list(ANA, { status: 'pending' }, {})).items) {
    await fixture.reviews.respond(ANA, review.id, { outcome: 'cancelled' }, null);
  }
  for (const { id: elicitation_id } of (await fixture.elicitations.list(ANA, { status: 'pending' }, {}))
    .items) {
    await fixture.elicitations.respond(ANA, elicitation_id, { action: 'cancel' }, null);
  }
  expect(await fixture.errors(id)).not.toContain('message_unreadable');
  await fixture.expectSameState(id);
  expect(await fixture.agents.stop(ANA, id, 0)).toMatchObject({ status: 'cancelled', pending_reviews: 0 });
  await vi.waitFor(async () => {
    expect((await fixture.prompting.list(ANA, id)).every(({ state }) => state === 'queued')).toBe(true);
  }, SOON);
  await fixture.end();
});
