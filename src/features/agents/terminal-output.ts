/** Terminal output, which ACP v2 encodes as base64: decoded for redaction, which works on text. */
import { CLIENT_METHODS } from '@agentclientprotocol/sdk';
import { isRecord } from '../../acp/json.ts';
import type { Message } from '../../acp/message.ts';
import type { Redactor } from '../../core/redaction.ts';

/** `text`: the message as written, returned unchanged if it has no secret. Each message is redacted on its own. */
export function withoutSecrets(message: Message, text: string, redactor: () => Redactor | null): string {
  if (message.kind !== 'notification' || message.method !== CLIENT_METHODS.session_update) return text;
  const holder = isRecord(message.params) ? holderOf(message.params.update) : null;
  if (typeof holder?.data !== 'string') return text;
  const bytes = Buffer.from(holder.data, 'base64');
  const rest = redactor()?.take(bytes, { last: true }).bytes ?? bytes;
  if (bytes.equals(rest)) return text;
  const redacted = JSON.parse(text) as { params: { update: unknown } };
  holderOf(redacted.params.update)!.data = Buffer.from(rest).toString('base64');
  return JSON.stringify(redacted);
}

/** The object that has the bytes; null for every other update. */
function holderOf(update: unknown): Record<string, unknown> | null {
  if (!isRecord(update)) return null;
  if (update.sessionUpdate === 'terminal_output_chunk') return update;
  return update.sessionUpdate === 'terminal_update' && isRecord(update.output) ? update.output : null;
}
