/** The text of mail. Pure. */
import { escapeHidden } from '../../../core/visible.ts';
import { pretty } from '../run/facts.ts';

/** `payload.text`, or the payload as JSON. */
export function mailText(payload: Record<string, unknown>): string {
  return escapeHidden(typeof payload.text === 'string' ? payload.text : pretty(payload));
}
