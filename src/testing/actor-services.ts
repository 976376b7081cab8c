/** The services that actor methods use, with the database of a test. The effects of runs are not carried out. */
import { silentLog } from '../base/log.ts';
import { Feed } from '../events/feed.ts';
import { type TeamMethodsOptions, teamMethods } from '../features/actors/team-methods.ts';
import { ActorTransactions } from '../features/actors/transactions.ts';
import type { ActorMethods } from '../features/feature.ts';
import { mailMethods, triggerMethods } from '../features/mailbox/actor.ts';
import { countUnacknowledged } from '../features/mailbox/queries/mail.ts';
import { Mailbox } from '../features/mailbox/service.ts';
import { Triggers } from '../features/mailbox/triggers.ts';
import { RunPublisher } from '../features/runs/publisher.ts';
import { Scheduler } from '../features/runs/scheduler.ts';
import { Runs } from '../features/runs/service.ts';
import { Facts } from '../work/facts.ts';
import { Timers } from '../work/timers.ts';
import type { AccountsRoom } from './accounts.ts';

export interface ActorServices {
  runs: Runs;
  methods(reviews: TeamMethodsOptions['reviews']): ActorMethods;
  close(): Promise<void>;
}

export function actorServices({ store, clock, audit, idempotency }: AccountsRoom): ActorServices {
  const common = { store, clock, log: silentLog };
  const [feed, facts, timers] = [new Feed(common), new Facts(common), new Timers(common)];
  const publisher = new RunPublisher({ clock, feed });
  const scheduler = new Scheduler({ clock, facts, publisher });
  scheduler.open(() => {});
  const runs = new Runs({
    ...{ store, clock, audit, scheduler, idempotency },
    extensions: { publishTask: () => {}, unacknowledgedMail: countUnacknowledged },
  });
  const mailbox = new Mailbox({ store, clock, facts, timers, audit, publisher });
  const triggers = new Triggers({ store, clock, timers, audit, idempotency }, mailbox);
  const transactions = new ActorTransactions(store);
  const methods = (reviews: TeamMethodsOptions['reviews']) => ({
    ...teamMethods({ store, runs, reviews }),
    ...mailMethods(store, transactions, mailbox),
    ...triggerMethods(store, transactions, triggers),
  });
  return { runs, methods, close: async () => feed.close() };
}

/** The actions of actors in runs, from the audit log, oldest first: `<actor> <event> <step or run>`. */
export function actsOf({ store }: AccountsRoom): Promise<string[]> {
  return store.read((reader) =>
    reader
      .all(reader.sql.selectFrom('audit').select(['event', 'details']).orderBy('id'))
      .flatMap(({ event, details }) => {
        const { actor_id, step_key, run_id } = JSON.parse(details ?? '{}') as Record<string, string>;
        return actor_id === undefined ? [] : `${actor_id} ${event} ${step_key ?? run_id}`;
      }),
  );
}
