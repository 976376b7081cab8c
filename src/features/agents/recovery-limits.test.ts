/** How many unknown sessions a remote node can add to the database. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { directLink } from '../../core/node.ts';
import type { Launch } from '../../core/session.ts';
import { ANA, FeaturesFixture } from '../../testing/features-fixture.ts';
import type { ScriptedNode } from '../../testing/scripted-node.ts';
import type { AdoptingSink } from './adoption.ts';
import { limits } from './limits.ts';

let fixture: FeaturesFixture;
let node: ScriptedNode;
let launch: Launch;
let sink: AdoptingSink;

beforeEach(async () => {
  const small = (name: keyof typeof limits, value: number) =>
    vi.spyOn(limits, name, 'get').mockReturnValue(value as never);
  small('recovered_agents_per_node_max', 3);
  small('recovered_sessions_per_agent_max', 2);
  fixture = await FeaturesFixture.make();
  ({ node } = fixture);
  await fixture.create({ start: true });
  [launch] = node.launches.values() as Iterable<Launch> as [Launch];
  ({ sink } = fixture.readSessionsOf(node));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await fixture.end();
});

/** Sends a snapshot with unknown sessions, as [session, agent]. */
async function report(names: readonly (readonly [session: string, agent: string])[], node_id = 'box') {
  node.views.clear();
  for (const [session, agent] of names)
    node.addSession({ ...launch, session_id: `ses_${session}`, agent_id: `agt_${agent}`, agent_name: agent });
  await sink.snapshot([...node.views.values()], directLink(node_id), []);
}
const each = (...names: string[]) => names.map((name) => [name, name] as const);

async function recovered(): Promise<string[]> {
  const { items } = await fixture.agents.list(ANA, { label: ['recovered=true'] }, {});
  return items.map(({ name }) => name).toSorted();
}

async function sessions(): Promise<string[]> {
  const query = await fixture.store.read((reader) =>
    reader.all(reader.sql.selectFrom('sessions').select('id').where('node_id', '=', 'box').orderBy('num')),
  );
  return query.map(({ id }) => id);
}

/** Ends an agent's session, and optionally deletes the agent, without its node. */
async function end(name: string, and_delete = false): Promise<void> {
  await fixture.store.write(async (tx) => {
    await tx.run(tx.sql.updateTable('sessions').set({ state: 'ended' }).where('id', '=', `ses_${name}`));
    if (and_delete) await tx.run(tx.sql.deleteFrom('agents').where('id', '=', `agt_${name}`));
  });
}

test('a remote node adds a limited number of agents, also with other sessions after each new link', async () => {
  await report(each('a', 'b', 'c', 'd', 'e'));
  expect(await recovered()).toEqual(['a', 'b', 'c']);
  expect(sink.unrecovered).toBe(2);
  await report(each('f', 'g'));
  expect(await recovered()).toEqual(['a', 'b', 'c']);
  expect(sink.unrecovered).toBe(2);
});

test('a session that was left on its node is recovered once an agent has been deleted', async () => {
  await report(each('a', 'b', 'c', 'd', 'e'));
  await end('b', true);
  await report(each('a', 'c', 'd', 'e'));
  expect(await recovered()).toEqual(['a', 'c', 'd']);
  expect(sink.unrecovered).toBe(1);
  await end('a', true);
  await report(each('c', 'd', 'e'));
  expect(await recovered()).toEqual(['c', 'd', 'e']);
  expect(sink.unrecovered).toBe(0);
});

test('the agents of other nodes and of the main node do not count', async () => {
  await report(each('a', 'b', 'c', 'd'));
  await report(each('k', 'l', 'm', 'n'), 'other');
  await report(each('w', 'x', 'y', 'z'), 'main');
  expect(await recovered()).toEqual(['a', 'b', 'c', 'k', 'l', 'm', 'w', 'x', 'y', 'z']);
});

test('known agents continue with their sessions although no more agents can be recovered', async () => {
  await report(each('a', 'b', 'c'));
  await end('a');
  await report([['a2', 'a'], ...each('b', 'c', 'd')]);
  expect(await sessions()).toEqual(['ses_a', 'ses_b', 'ses_c', 'ses_a2']);
  expect(sink.unrecovered).toBe(1);
});

test('a remote node adds a limited number of sessions to each agent', async () => {
  await report(each('a'));
  for (const [last, next] of [
    ['a', 'a2'],
    ['a2', 'a3'],
    ['a2', 'a4'],
  ] as const) {
    await end(last);
    await report([[next, 'a']]);
  }
  expect(await sessions()).toEqual(['ses_a', 'ses_a2']);
  expect(sink.unrecovered).toBe(1);
});

test('sessions of forgotten agents are ended although no more agents can be recovered', async () => {
  await report(each('a', 'b', 'c'));
  const row = { node_id: 'box', created_at: 1 };
  await fixture.store.write((tx) =>
    tx.run(tx.sql.insertInto('forgotten').values({ id: 'agt_gone', agent_id: 'agt_gone', ...row })),
  );
  await report(each('a', 'b', 'c', 'gone'));
  expect(sink.unrecovered).toBe(0);
  const intents = await fixture.store.read((reader) =>
    reader.all(reader.sql.selectFrom('outbox').select(['lane', 'kind']).where('kind', '=', 'discard')),
  );
  expect(intents).toEqual([{ lane: 'ses_gone', kind: 'discard' }]);
});

test('the log says once that sessions are left on their node', async () => {
  const warn = vi.spyOn(fixture.core.log, 'warn');
  for (let n = 0; n < 3; n++) await report(each('a', 'b', 'c', 'd'));
  const lines = warn.mock.calls.map(([, text]) => text).filter((text) => text?.startsWith('too many'));
  expect(lines).toEqual(['too many unknown sessions; leaving them on their node']);
});
