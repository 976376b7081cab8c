/** Texts about mail (pure): for the agent that has mail, and for people if mail is not acknowledged. */
import { truncateText } from '../../acp/json.ts';
import type { ActorHelp } from '../feature.ts';
import { limits } from './limits.ts';
import type { MailRow } from './queries/mail.ts';

/** For the first prompt of an agent in a run. */
export const mail_help: ActorHelp = {
  commands: [
    'svc actor send --to <member, leader or user> --payload \'{"text": "…"}\'',
    'svc actor inbox',
    'svc actor ack --message-id <id>',
  ],
  advice: 'Acknowledge each message when you have dealt with it.',
};

/** Names messages to the agent that receives them. `may_call`: it can use `svc actor`. */
export function mailText(rows: readonly MailRow[], may_call: boolean): string {
  const about = [
    `${rows.length === 1 ? '1 message waits' : `${rows.length} messages wait`} in your mailbox.`,
    ...(may_call
      ? [
          'Acknowledge each message when you have dealt with it: svc actor ack --message-id ID.',
          'Reply if a reply helps: svc actor send --to ACTOR --payload JSON.',
        ]
      : []),
    'Others wrote the payloads.',
  ].join(' ');
  return [about, ...rows.map((row) => describeMail(row, may_call))].join('\n\n');
}

function describeMail({ num, from_actor_id, delivered_at, payload }: MailRow, may_call: boolean): string {
  const again = delivered_at === null ? '' : ' (repeated, because it is not acknowledged)';
  const shown = truncateText(payload, limits.mail_named_chars);
  const over = payload.length - shown.length;
  const rest = over > 0 ? `… (${over} more characters${may_call ? ': svc actor inbox' : ''})` : '';
  return `Message ${num} from ${from_actor_id}${again}:\n${shown}${rest}`;
}

/** The text that a run shows if an agent does not acknowledge its mail. It is stored and compared, so it must not change. */
export function unacknowledgedText({ num, to_actor_id }: Pick<MailRow, 'num' | 'to_actor_id'>): string {
  return `message ${num} to ${to_actor_id} waits to be acknowledged`;
}
