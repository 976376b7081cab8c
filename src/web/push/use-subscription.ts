/** Keeps push notifications consistent with an open page. */
import { useEffect } from 'react';
import type { ElicitationRecord, ReviewRecord } from '../api/queries.ts';

/** Prefixes of notification tags. */
const [REVIEW, ELICITATION] = ['review-', 'elicitation-'];

/** Synchronizes this device's subscription with the service, once per page. */
export function useSyncedSubscription(user_id: string | undefined): void {
  useEffect(() => {
    if (user_id === undefined || !('Notification' in window) || Notification.permission !== 'granted') return;
    // Few devices are subscribed, so the code is loaded only for those. The next page tries again.
    import('./device.ts').then(({ syncSubscription }) => syncSubscription()).catch(() => {});
  }, [user_id]);
}

/** Closes notifications about reviews and elicitations that are no longer pending. */
export function useClosedNotifications(
  reviews: readonly ReviewRecord[],
  elicitations: readonly ElicitationRecord[],
): void {
  useEffect(() => {
    if (!('Notification' in window) || Notification.permission !== 'granted') return;
    const over = (prefix: string, rows: readonly { id: string; status: string }[]) =>
      rows.flatMap(({ id, status }) => (status === 'pending' ? [] : `${prefix}${id}`));
    const tags = new Set([...over(REVIEW, reviews), ...over(ELICITATION, elicitations)]);
    void close(tags).catch(() => {});
  }, [reviews, elicitations]);
}

async function close(tags: ReadonlySet<string>): Promise<void> {
  const worker = await navigator.serviceWorker?.getRegistration();
  for (const shown of (await worker?.getNotifications()) ?? []) {
    if (tags.has(shown.tag)) shown.close();
  }
}
