/** Bounds of session facts. Agents choose the number and the names of their processes, and some of the error texts. */
import { limits } from '../base/limits.ts';
import { cutText } from '../base/text.ts';
import type { SessionEnd, SessionFact } from './node.ts';
import type { Leftover } from './session.ts';

/**
 * Returns at most `limits.leftovers_max` processes, with commands of at most `limits.leftover_command_bytes_max` bytes. The
 * last command then says how many more there are. Idempotent.
 */
export function boundLeftovers(leftovers: readonly Leftover[]): Leftover[] {
  const more = leftovers.length - limits.leftovers_max;
  return leftovers.slice(0, limits.leftovers_max).map(({ pid, command }, index) => {
    const note = more > 0 && index === limits.leftovers_max - 1 ? ` (and ${more} more processes)` : '';
    return { pid, command: cutText(command, limits.leftover_command_bytes_max - note.length) + note };
  });
}

/** Returns the end with bounded leftovers and message. Idempotent. */
export function boundEnd(end: SessionEnd): SessionEnd {
  const { message } = end.exit;
  const exit = { ...end.exit, message: message && cutText(message, limits.fact_text_bytes_max) };
  return { ...end, exit, leftovers: boundLeftovers(end.leftovers) };
}

/** Returns the fact with bounded texts, so that all facts of a session fit in a message of the link. Idempotent. */
export function boundFact(fact: SessionFact): SessionFact {
  const { body } = fact;
  if (body.kind === 'ended') return { ...fact, body: { ...body, end: boundEnd(body.end) } };
  if (body.kind !== 'trouble') return fact;
  const fits = Buffer.byteLength(JSON.stringify(body.details)) <= limits.fact_text_bytes_max;
  const error = cutText(body.error, limits.fact_text_bytes_max);
  return { ...fact, body: { ...body, error, details: fits ? body.details : {} } };
}
