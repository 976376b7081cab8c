/** HTTP handlers for mailboxes and triggers: parse, call, shape the response. */

import type { Handlers } from '../../server/call.ts';
import { asList } from '../../server/list.ts';
import { toSchedule } from './rules/schedule.ts';
import type { Trigger } from './rules/trigger.ts';
import type { Mailbox } from './service.ts';
import type { Triggers } from './triggers.ts';

type MailOperations =
  | 'sendMail'
  | 'listMail'
  | 'getMail'
  | 'ackMail'
  | 'listRunMail'
  | 'listRunTriggers'
  | 'listTriggers'
  | 'setTrigger'
  | 'deleteTrigger';

/** A signal that never aborts. */
const never = new AbortController().signal;

export function mailHandlers(mailbox: Mailbox, triggers: Triggers): Pick<Handlers, MailOperations> {
  return {
    sendMail: async ({ caller, body, idempotency_key }) => {
      const mail = await mailbox.send(caller, body, idempotency_key);
      return { location: `/api/actor/mailbox/${mail.id}`, body: mail };
    },
    listMail: (call) => {
      // Only a wait needs the signal, which is created on first use.
      const signal = call.query.wait === undefined ? never : call.signal;
      return mailbox.inbox(call.caller, call.params.actor_id, call.query, signal);
    },
    getMail: ({ caller, params }) => mailbox.get(caller, parseMessageNumber(params.message_id)),
    ackMail: ({ caller, params }) => mailbox.ack(caller, parseMessageNumber(params.message_id)),
    listRunMail: async ({ caller, params, query }) =>
      asList(query, await mailbox.ofRun(caller, params.run_id, query)),
    listRunTriggers: async ({ caller, params, query }) =>
      asList(query, await triggers.ofRun(caller, params.run_id, query)),
    listTriggers: async ({ caller, params, query }) =>
      asList(query, await triggers.list(caller, params.actor_id, query)),
    setTrigger: ({ caller, params, body, idempotency_key }) => {
      const { run_id, payload, ...times } = body;
      const input = { run_id, payload, ...toSchedule(times) };
      const locate = ({ actor_id }: Trigger) => `/api/actor/${encodeURIComponent(actor_id)}/triggers`;
      return triggers.set(caller, params.actor_id, input, idempotency_key, locate);
    },
    deleteTrigger: async ({ caller, params }) => {
      await triggers.remove(caller, params.actor_id, params.trigger_id);
      return undefined;
    },
  };
}

/** NaN, which is the id of no message, for anything that is not a number. */
function parseMessageNumber(message_id: string): number {
  return /^\d{1,16}$/.test(message_id) ? Number(message_id) : Number.NaN;
}
