/** Keeps push notifications consistent with an open page. */
import { useEffect, useRef } from 'react';
import { notificationTag } from '../../features/notifications/rules.ts';
import type { WaitingItem } from '../waiting/queue.ts';

/** Synchronizes this device's subscription with the service, once per page. */
export function useSyncedSubscription(user_id: string | undefined): void {
  useEffect(() => {
    if (user_id === undefined || !('Notification' in window) || Notification.permission !== 'granted') return;
    // Few devices are subscribed, so the code is loaded only for those. The next page tries again.
    import('./device.ts').then(({ syncSubscription }) => syncSubscription()).catch(() => {});
  }, [user_id]);
}

/** Closes notifications about what no longer waits. Settled questions and sign-ins are not in the list of items. */
export function useClosedNotifications(items: readonly WaitingItem[]): void {
  const before = useRef(items);
  useEffect(() => {
    if (!('Notification' in window) || Notification.permission !== 'granted') return;
    const open = new Set(items.filter((item) => item.open).map(tagOf));
    const over = [...before.current, ...items].map(tagOf).filter((tag) => !open.has(tag));
    before.current = items;
    void close(new Set(over)).catch(() => {});
  }, [items]);
}

function tagOf({ kind, id }: WaitingItem): string {
  return notificationTag(kind, id);
}

async function close(tags: ReadonlySet<string>): Promise<void> {
  const worker = await navigator.serviceWorker?.getRegistration();
  for (const shown of (await worker?.getNotifications()) ?? []) {
    if (tags.has(shown.tag)) shown.close();
  }
}
