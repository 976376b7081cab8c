/** Actor methods about mail and time triggers. */
import type { Reader, Store } from '../../store/store.ts';
import { actAs, commanderOf, getInbox, type Inbox } from '../actors/acting.ts';
import type { ActorRequest } from '../actors/contract.ts';
import type { ActorCaller } from '../actors/rules/actor.ts';
import { assertCurrentRunAttempt, getRunAttempt } from '../actors/stale-attempts.ts';
import type { ActorTransactions } from '../actors/transactions.ts';
import type { ActorMethods } from '../feature.ts';
import { getParticipants } from '../runs/participants.ts';
import { resolveActor } from '../teams/participants.ts';
import { limits } from './limits.ts';
import { toMail } from './queries/mail.ts';
import { listTriggers, toTrigger } from './queries/triggers.ts';
import type { Mail } from './rules/mail.ts';
import { toSchedule } from './rules/schedule.ts';
import type { Mailbox } from './service.ts';
import type { Triggers } from './triggers.ts';

type MailMethods = Pick<ActorMethods, 'inbox' | 'receive' | 'ack' | 'send'>;

export function mailMethods(
  store: Store,
  transactions: ActorTransactions,
  mailbox: Pick<Mailbox, 'post' | 'take' | 'acknowledge' | 'awaitNew'>,
): MailMethods {
  const ownInbox = (caller: ActorCaller, request: ActorRequest<'receive'>): Promise<Inbox> =>
    store.read((reader) => openInbox(reader, caller, request));

  const take = async (caller: ActorCaller, request: ActorRequest<'inbox'>): Promise<Mail[]> => {
    const { limit = limits.actor_inbox_items_max, status } = request;
    return mailbox.take({ ...toFilter(await ownInbox(caller, request)), status, limit });
  };

  return {
    inbox: async (caller, request) => ({ messages: await take(caller, request) }),
    receive: async (caller, request) => {
      const messages = await take(caller, request);
      if (messages.length > 0) return { messages };
      const inbox = await ownInbox(caller, request);
      const waiter = caller.session && { session_id: caller.session.id };
      await mailbox.awaitNew(waiter, { ...toFilter(inbox), limit: 1 }, limits.actor_receive_ms);
      return { messages: await take(caller, request) };
    },
    ack: (caller, { message_id, ...request }) =>
      store.write(async (tx) =>
        toMail(await mailbox.acknowledge(tx, message_id, await openInbox(tx, caller, request))),
      ),
    send: (caller, { to, payload, idempotency_key = null, ...request }) =>
      transactions.inRun(caller, request, 'mail.use', async (tx, acting) => {
        const { actor_id: from_actor_id, team, run } = acting;
        const to_actor_id = (await resolveActor(tx, getParticipants(team, run), to)).actor_id;
        // A message from an earlier attempt of the run belongs to that attempt.
        const run_attempt = (await getRunAttempt(tx, caller)) ?? run.attempt;
        // A script may use the same key in every attempt of a run.
        const key = idempotency_key && `${run.id} ${run_attempt} ${idempotency_key}`;
        const mail = { run, run_attempt, from_actor_id, to_actor_id, payload, idempotency_key: key };
        // Agents may send hundreds of messages a second. In the audit log, whose records wait for each other, these would
        // delay everyone's changes.
        const by = caller.session === null ? commanderOf(caller, acting) : undefined;
        return toMail(await mailbox.post(tx, { ...mail, by }));
      }),
  };
}

/** An agent of an earlier attempt of the run must not take mail of this one. */
async function openInbox(
  reader: Reader,
  caller: ActorCaller,
  request: ActorRequest<'receive'>,
): Promise<Inbox> {
  const acting = await actAs(reader, caller, request);
  if (acting.run !== null) await assertCurrentRunAttempt(reader, caller, acting.run);
  return getInbox(acting);
}

type TriggerMethods = Pick<ActorMethods, 'time-trigger-list' | 'time-trigger-set' | 'time-trigger-cancel'>;

export function triggerMethods(
  store: Store,
  transactions: ActorTransactions,
  triggers: Pick<Triggers, 'add' | 'drop'>,
): TriggerMethods {
  return {
    'time-trigger-list': (caller, request) =>
      store.read(async (reader) => {
        const { run_num, ...own } = getInbox(await actAs(reader, caller, request));
        return {
          triggers: (await listTriggers(reader, { ...own, run_num: run_num ?? undefined })).map(toTrigger),
        };
      }),
    'time-trigger-set': (caller, { at, every_seconds, cron, timezone, payload, ...request }) =>
      transactions.inCurrentAttempt(caller, request, 'triggers.use', async (tx, acting) => {
        const trigger = { payload, ...toSchedule({ at, every_seconds, cron, timezone }) };
        const by = commanderOf(caller, acting);
        return toTrigger(await triggers.add(tx, acting.run, acting.actor_id, trigger, by));
      }),
    'time-trigger-cancel': (caller, { trigger_id, ...request }) =>
      store.write(async (tx) => {
        const acting = await actAs(tx, caller, request);
        return toTrigger(await triggers.drop(tx, trigger_id, getInbox(acting), commanderOf(caller, acting)));
      }),
  };
}

function toFilter({ actor_id, run_num, view }: Inbox) {
  return { to_actor_id: actor_id, run_num: run_num ?? undefined, view };
}
