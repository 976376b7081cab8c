/** What an open page does for notifications, beside their settings. */
import { useEffect } from 'react';
import type { ReviewRecord } from '../api/queries.ts';

const REVIEW = 'review-';

/** Brings this device's subscription up to date with the service, once per page. */
export function useKeptUp(user_id: string | undefined): void {
  useEffect(() => {
    if (user_id === undefined || !('Notification' in window) || Notification.permission !== 'granted') return;
    // Few devices are subscribed, so the rest need not load what it takes. The next page tries again.
    import('./device.ts').then(({ keepUp }) => keepUp()).catch(() => {});
  }, [user_id]);
}

/** What is answered here need not wait for the service to say so. */
export function useTidied(reviews: readonly ReviewRecord[]): void {
  useEffect(() => {
    if (!('Notification' in window) || Notification.permission !== 'granted') return;
    void close(reviews).catch(() => {});
  }, [reviews]);
}

async function close(reviews: readonly ReviewRecord[]): Promise<void> {
  const worker = await navigator.serviceWorker?.getRegistration();
  for (const shown of (await worker?.getNotifications()) ?? []) {
    const review = reviews.find(({ id }) => `${REVIEW}${id}` === shown.tag);
    if (review && review.status !== 'pending') shown.close();
  }
}
