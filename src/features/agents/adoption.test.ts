import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Launch } from '../../core/session.ts';
import { ANA, FeaturesFixture } from '../../testing/features-fixture.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

test('a session that cannot be adopted does not prevent the adoption of others', async () => {
  const { node } = fixture;
  await fixture.create({ start: true });
  const [launch] = node.launches.values() as Iterable<Launch>;
  const found = (name: string, agent_name: string | null) =>
    node.addSession({
      ...launch!,
      session_id: `ses_${name}`,
      agent_id: `agt_${name}`,
      agent_name: agent_name!,
    });
  found('broken', null);
  found('sound', 'sound');
  await node.sendSnapshot(node.link!);
  expect((await fixture.agents.list(ANA, {}, {})).items).toMatchObject([{ id: 'agt_sound' }, { name: 'a' }]);
});
