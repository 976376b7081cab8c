/** A node that lost facts of a session, in a power failure or a rollback of its disk, which the plane had committed. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ANA, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { ended, type ScriptedNode } from '../../testing/scripted-node.ts';

let fixture: FeaturesFixture;
let node: ScriptedNode;

beforeEach(async () => {
  fixture = await FeaturesFixture.make();
  ({ node } = fixture);
});
afterEach(() => fixture.end());

/** The node reports two warnings, and loses them with the last `lost` facts after the plane has committed them. */
async function agentWithLostFacts(lost: number) {
  const agent = await fixture.create({ start: true });
  const session_id = agent.session_id!;
  for (const code of ['output_paused', 'output_resumed'] as const)
    node.sendFact(session_id, { kind: 'trouble', code, error: '', details: {} });
  await vi.waitFor(
    async () => expect(await fixture.errors(agent.id)).toEqual(['output_paused', 'output_resumed']),
    SOON,
  );
  const view = node.views.get(session_id)!;
  view.facts.splice(3 - lost);
  return { id: agent.id, session_id };
}

test.each([1, 2, 3])(
  'a session that ended is adopted as ended, although %i facts were lost',
  async (lost) => {
    const { id, session_id } = await agentWithLostFacts(lost);
    await fixture.close();
    node.write(session_id, Buffer.from('last\n'));
    node.sendFact(session_id, ended(1, 'last\n'.length));
    await fixture.open();
    expect(await fixture.until(id, 'failed')).toMatchObject({ exit_code: 1 });
    expect((await fixture.events(id)).filter(({ type }) => type === 'output')).toMatchObject([
      { data: 'last\n' },
    ]);
    await vi.waitFor(() => expect(node.views.size).toBe(0), SOON);
  },
);

test('a session that runs is adopted as running, and its end counts when the node reports it', async () => {
  const { id, session_id } = await agentWithLostFacts(2);
  await fixture.close();
  await fixture.open();
  expect(await fixture.get(id)).toMatchObject({ status: 'running' });
  node.sendFact(session_id, ended(0));
  await fixture.until(id, 'completed');
  await vi.waitFor(() => expect(node.views.size).toBe(0), SOON);
  await fixture.agents.delete(ANA, id, { force: false, delete_worktree: false });
});
