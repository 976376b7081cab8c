/** Redacts secrets in terminal output (pure). ACP v2 encodes it as base64, so it is decoded first. */
import { CLIENT_METHODS } from '@agentclientprotocol/sdk';
import type { Redactor } from '../../core/redaction.ts';
import { isRecord } from '../json.ts';
import type { Message } from '../message.ts';

/**
 * `text`: the message as JSON, which is returned unchanged if it contains no secret. Each message is redacted separately.
 */
export function redactTerminalOutput(message: Message, text: string, redactor: Redactor | null): string {
  if (message.kind !== 'notification' || message.method !== CLIENT_METHODS.session_update) return text;
  const output = isRecord(message.params) ? findOutput(message.params.update) : null;
  if (typeof output?.data !== 'string') return text;
  const bytes = Buffer.from(output.data, 'base64');
  const redacted = redactor?.take(bytes, { last: true }).bytes ?? bytes;
  if (bytes.equals(redacted)) return text;
  const copy = JSON.parse(text) as { params: { update: unknown } };
  findOutput(copy.params.update)!.data = Buffer.from(redacted).toString('base64');
  return JSON.stringify(copy);
}

/** The object that contains the bytes; null for every other update. */
function findOutput(update: unknown): Record<string, unknown> | null {
  if (!isRecord(update)) return null;
  if (update.sessionUpdate === 'terminal_output_chunk') return update;
  return update.sessionUpdate === 'terminal_update' && isRecord(update.output) ? update.output : null;
}
