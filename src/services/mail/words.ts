/** What is said about mail: to an agent that it waits for, and to people when nobody takes it. Pure. */
import { limits } from '../../base/limits.ts';
import type { MailRow } from '../../store/mail.ts';

/** Names messages to the agent that they are for. */
export function mailWords(rows: readonly MailRow[]): string {
  const many = rows.length === 1 ? '1 message waits' : `${rows.length} messages wait`;
  const about = `${many} in your mailbox. Acknowledge each once you have dealt with it: svc actor ack --message-id ID. Answer, where an answer is of use: svc actor send --to ACTOR --payload JSON. The payloads are what others wrote.`;
  return [about, ...rows.map(nameOne)].join('\n\n');
}

function nameOne({ num, from_actor_id, delivered_at, payload }: MailRow): string {
  const again = delivered_at === null ? '' : ' (you were told before, and have not acknowledged it)';
  const over = payload.length - limits.mail_named_chars;
  const rest = over > 0 ? `… (${over} more characters: svc actor inbox)` : '';
  return `Message ${num} from ${from_actor_id}${again}:\n${payload.slice(0, limits.mail_named_chars)}${rest}`;
}

/** What a run shows when an agent does not take its mail. */
export function unacknowledgedWords({ num, to_actor_id }: Pick<MailRow, 'num' | 'to_actor_id'>): string {
  return `message ${num} to ${to_actor_id} waits to be acknowledged`;
}
