/** Text for settled elicitations (pure). */
import type { ElicitationRecord } from '../api/queries.ts';

export function outcomeText({
  status,
  mode,
  answered_by,
  delivery,
  completed_at,
}: ElicitationRecord): string {
  const by = answered_by === null ? '' : ` · ${answered_by}`;
  const lost = delivery === 'undeliverable' ? ' · the agent was no longer waiting' : '';
  switch (status) {
    case 'pending':
      return '';
    case 'accepted': {
      const done = mode === 'form' ? 'Sent' : completed_at === null ? 'Opened' : 'Done';
      return `${done}${by}${lost}`;
    }
    case 'declined':
      return `Declined${by}${lost}`;
    case 'cancelled':
      return answered_by === null ? 'No longer needed' : `Cancelled${by}${lost}`;
    case 'expired':
      return 'Expired: nobody answered in time';
  }
}

/** One line of the agent's message. */
export function getTitle({ message, form, url }: ElicitationRecord): string {
  return (message || form?.title || url || 'Untitled request').split('\n')[0]!;
}
