/**
 * What teams are to the plane, as a value: definitions, runs, tasks, mail and triggers, wired to each other and to the
 * agents' room, with all that they take part in.
 */
import { mailHandlers } from '../http/mail.ts';
import { runHandlers } from '../http/runs.ts';
import type { Streams } from '../http/sse.ts';
import { taskHandlers } from '../http/tasks.ts';
import { teamHandlers } from '../http/teams.ts';
import type { ReviewNotice } from '../services/acp/review-routing.ts';
import type { Reviews } from '../services/acp/reviews.ts';
import { actorMailbox, actorTriggers } from '../services/actors/team-mail.ts';
import { teamMethods } from '../services/actors/team-methods.ts';
import { actorRuns } from '../services/actors/team-runs.ts';
import type { AgentsContext } from '../services/agents/context.ts';
import type { Lifecycle } from '../services/agents/lifecycle.ts';
import { Mailbox } from '../services/mail/mailbox.ts';
import { Triggers } from '../services/mail/triggers.ts';
import { Waking } from '../services/mail/waking.ts';
import { Messages } from '../services/tasks/messages.ts';
import { Tasks } from '../services/tasks/tasks.ts';
import { beginRun } from '../services/teams/beginning.ts';
import { Membership } from '../services/teams/membership.ts';
import { RunEvents } from '../services/teams/run-events.ts';
import { openRunning } from '../services/teams/running.ts';
import { Runs } from '../services/teams/runs.ts';
import { Teams } from '../services/teams/teams.ts';
import type { Tokens } from '../services/tokens.ts';
import { runOfNum } from '../store/runs.ts';
import type { Tx } from '../store/store.ts';

export async function openTeamServices(context: AgentsContext, lifecycle: Lifecycle, reviews: Reviews) {
  const { store, clock, feed, facts, timers, audit, idempotency, logger } = context.options;
  const running = openRunning(context, lifecycle, (...asked) => mailbox.pendingWords(...asked));
  const { progress } = running;
  const mailbox = new Mailbox({ store, clock, facts, timers, audit, progress });
  const triggers = new Triggers({ store, clock, timers, audit, idempotency }, mailbox);
  const waking = new Waking(context, mailbox);
  const membership = await Membership.open(store);
  const teams = new Teams({ store, clock, audit, membership, idempotency });
  const runs = new Runs({ store, clock, audit, feed, progress, idempotency });
  const events = new RunEvents({ store, clock, progress });
  const conversing = { store, clock, feed, audit, idempotency };
  const tasks = new Tasks({ ...conversing, beginRun: (tx, asked) => beginRun(tx, progress, asked) });
  const messages = new Messages({ ...conversing, logger, post: (tx, letter) => mailbox.post(tx, letter) });

  return {
    membership,
    ended: running.ended,
    /** Tells the leader of a run. */
    notify: (tx: Tx, { run_num, ...letter }: ReviewNotice): void => {
      mailbox.post(tx, { run: runOfNum(tx, run_num)!, ...letter, hops: 0 });
    },
    facts: {
      tasks: tasks.facts(),
      messages: messages.facts(),
      runs: running.facts,
      mail: waking.facts(),
      triggers: triggers.facts(),
    },
    timers: { ...running.timers, ...waking.timers(), ...triggers.timers() },
    intents: running.intents,
    /** What agents ask for. */
    methods: teamMethods({
      ...{ store, reviews, runs: actorRuns({ progress, audit }) },
      mailbox: actorMailbox(mailbox),
      triggers: actorTriggers(triggers),
    }),
    /** What people ask for. */
    handlers: (tokens: Tokens, streams: Streams) => ({
      ...teamHandlers(teams),
      ...runHandlers({ runs, events, tokens, streams }),
      ...taskHandlers({ tasks, messages, tokens, streams }),
      ...mailHandlers(mailbox, triggers),
    }),
  };
}
