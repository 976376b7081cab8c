/** Mail and triggers as the actor surface asks for them. */
import { toMail } from '../../store/mail.ts';
import { attemptsOfSession } from '../../store/runs.ts';
import { listTriggers, toTrigger } from '../../store/triggers.ts';
import type { Mailbox } from '../mail/mailbox.ts';
import { scheduleOf } from '../mail/schedule.ts';
import type { Triggers } from '../mail/triggers.ts';
import type { ActorMailbox, ActorTriggers } from './deps.ts';

/** Nobody who has gone is told: whoever waits is answered in time. */
const nobodyLeaves = new AbortController().signal;

export function actorMailbox(mailbox: Mailbox): ActorMailbox {
  return {
    send: (tx, { session_id, ...letter }) => {
      // What is said in a session of an earlier attempt of the run belongs to that.
      const attempt = session_id === null ? undefined : attemptsOfSession(tx, session_id).at(-1);
      const { run_attempt = letter.run.attempt } = attempt ?? {};
      return toMail(mailbox.post(tx, { ...letter, run_attempt }));
    },
    inbox: ({ actor_id, run_num, view, limit, all }) =>
      mailbox.take({
        to_actor_id: actor_id,
        run_num: run_num ?? undefined,
        view,
        status: all ? 'all' : undefined,
        limit,
      }),
    ack: (tx, { message_id, ...own }) => toMail(mailbox.acknowledge(tx, message_id, own)),
    mailed: ({ actor_id, run_num, view }, wait_ms) =>
      mailbox.awaitNew(
        { to_actor_id: actor_id, run_num: run_num ?? undefined, view, limit: 1 },
        wait_ms,
        nobodyLeaves,
      ),
  };
}

export function actorTriggers(triggers: Triggers): ActorTriggers {
  return {
    list: (reader, { run_num, ...own }) =>
      listTriggers(reader, { ...own, run_num: run_num ?? undefined }).map(toTrigger),
    set: (tx, { run, actor_id, payload, ...times }) =>
      toTrigger(triggers.add(tx, run, actor_id, { payload, ...scheduleOf(times) }, actor_id)),
    cancel: (tx, { trigger_id, ...own }) => toTrigger(triggers.drop(tx, trigger_id, own)),
  };
}
