/** The mailbox and the time triggers as the actor surface asks for them. */
import { toMail } from '../../store/mail.ts';
import { listTriggers, toTrigger } from '../../store/triggers.ts';
import type { Mailbox } from '../mail/mailbox.ts';
import type { Triggers } from '../mail/triggers.ts';
import type { ActorMailbox, ActorTriggers, InboxOf } from './deps.ts';

export function actorMailbox(mailbox: Mailbox): ActorMailbox {
  const of = ({ actor_id, run_num }: InboxOf, limit: number) => ({
    to_actor_id: actor_id,
    run_num: run_num ?? undefined,
    limit,
  });
  return {
    send: (tx, letter) =>
      toMail(mailbox.post(tx, { ...letter, idempotency_key: letter.idempotency_key ?? undefined })),
    inbox: ({ limit, all, ...asked }) =>
      mailbox.take({ ...of(asked, limit), status: all ? 'all' : undefined }),
    ack: (tx, { actor_id, message_id }) => toMail(mailbox.acknowledge(tx, message_id, actor_id)),
    mailed: (asked, wait_ms) => mailbox.awaitNew(of(asked, 1), wait_ms, AbortSignal.timeout(wait_ms)),
  };
}

export function actorTriggers(triggers: Triggers): ActorTriggers {
  return {
    list: (reader, { actor_id, run_num }) =>
      listTriggers(reader, { actor_id, run_num: run_num ?? undefined }).map(toTrigger),
    set: (tx, { run, actor_id, ...asked }) => toTrigger(triggers.add(tx, run, actor_id, asked, actor_id)),
    cancel: (tx, { actor_id, trigger_id }) => toTrigger(triggers.drop(tx, trigger_id, actor_id)),
  };
}
