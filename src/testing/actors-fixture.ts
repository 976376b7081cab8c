/**
 * The actor methods, with a test's database, the team `x` and one open run of it. The effects of runs are not carried out.
 */
import { silentLog } from '../base/log.ts';
import { Feed } from '../events/feed.ts';
import type { ActorMethod } from '../features/actors/contract.ts';
import { Actors } from '../features/actors/service.ts';
import { SessionTokens } from '../features/actors/session-tokens.ts';
import { type TeamMethodsOptions, teamMethods } from '../features/actors/team-methods.ts';
import type { ActorMethods } from '../features/feature.ts';
import { RunPublisher } from '../features/runs/publisher.ts';
import { Scheduler } from '../features/runs/scheduler.ts';
import { Runs } from '../features/runs/service.ts';
import { mintToken, type TokenSettings } from '../link/trust/tokens.ts';
import { addAgent, addSession } from '../store/testing.ts';
import { Facts } from '../work/facts.ts';
import { Timers } from '../work/timers.ts';
import { AccountsFixture } from './accounts.ts';
import { addTeam, addUser, joinTeam, specOf, type TeamRows } from './team.ts';

export const settings: TokenSettings = {
  shared_secret: 'a shared secret of more than 32 bytes',
  issuer: 'svc',
  audience: 'svc-internal',
};
export const session_tokens = new SessionTokens(new Uint8Array(32).fill(7));

export interface ActorsFixture {
  fixture: AccountsFixture;
  actors: Actors;
  rows: TeamRows;
  /** By member: the number of its session. */
  sessions: Map<string, number>;
  /** Calls with the token of the member's session. */
  as(member: string, method: ActorMethod, params?: object, node_id?: string): Promise<unknown>;
  /** Calls with a token that is signed with the shared secret, as from outside a session. */
  withSharedSecret(method: ActorMethod, params?: object): Promise<unknown>;
  close(): Promise<void>;
}

/** What the methods of other features need. */
export interface MethodsDeps {
  fixture: AccountsFixture;
  facts: Facts;
  timers: Timers;
  publisher: RunPublisher;
}

/** `more`: adds the methods of another feature. The leader `boss` and the worker `hand` have agents; `help` has none. */
export async function openActorsFixture(
  reviews: TeamMethodsOptions['reviews'],
  more: (needs: MethodsDeps) => Partial<ActorMethods> = () => ({}),
): Promise<ActorsFixture> {
  const fixture = await AccountsFixture.open();
  const { store, clock, audit, idempotency } = fixture;
  const common = { store, clock, log: silentLog };
  const [feed, facts, timers] = [new Feed(common), new Facts(common), new Timers(common)];
  const publisher = new RunPublisher({ clock, feed });
  const scheduler = new Scheduler({ clock, facts, publisher, publishAgent: async () => {} });
  scheduler.open(async () => {});
  const nodes = { choose: (id = 'main') => id };
  const extensions = { publishTask: async () => {}, unacknowledgedMail: async () => new Map() };
  const common_runs = { store, clock, audit, scheduler, nodes, idempotency, extensions };
  const runs = new Runs({ ...common_runs, deleting: new Set() });
  const actors = new Actors({ ...common, session_tokens, settings: () => settings });
  actors.open({
    ...teamMethods({ store, runs, reviews }),
    ...more({ fixture, facts, timers, publisher }),
  } as ActorMethods);

  await addUser(store, { id: 'usr_1', username: 'ana' });
  await addUser(store, { id: 'usr_2', username: 'ben' });
  await addUser(store, { id: 'usr_3', username: 'eve' });
  const rows = await addTeam(store, 'x', specOf(['boss', 'hand', 'help']), { human_ids: ['usr_2'] });
  const sessions = new Map<string, number>();
  for (const member of ['boss', 'hand']) {
    sessions.set(member, await addSession(store, await addAgent(store, `agt_${member}`), `ses_${member}`));
    await joinTeam(store, `agt_${member}`, rows, member);
  }
  return {
    ...{ fixture, actors, rows, sessions },
    as: (member, method, params = {}, node_id = 'main') =>
      actors.call({ method, params, token: session_tokens.of(`ses_${member}`), node_id }),
    withSharedSecret: async (method, params = {}) => {
      const token = await mintToken(settings, '', clock, { kind: 'actor' });
      return actors.call({ method, params, token, node_id: 'main' });
    },
    close: async () => {
      await feed.close();
      await fixture.close();
    },
  };
}

/** The actions of actors in runs, from the audit log, oldest first: `<actor> <event> <step or run>`. */
export function actionsOf({ store }: AccountsFixture): Promise<string[]> {
  return store.read(async (reader) =>
    (await reader.all(reader.sql.selectFrom('audit').select(['event', 'details']).orderBy('id'))).flatMap(
      ({ event, details }) => {
        const { actor_id, step_key, run_id } = JSON.parse(details ?? '{}') as Record<string, string>;
        return actor_id === undefined ? [] : `${actor_id} ${event} ${step_key ?? run_id}`;
      },
    ),
  );
}
