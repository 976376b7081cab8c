/** Keeps push notifications consistent with an open page. */
import { useEffect, useRef } from 'react';
import { notificationTag } from '../../features/notifications/rules.ts';
import { session } from '../api/session.ts';
import type { WaitingItem } from '../waiting/queue.ts';

/**
 * Synchronizes this device's subscription with the service, once per page. When the session ends in any way, closes all
 * notifications: they may name agents and their commands.
 */
export function useSyncedSubscription(user_id: string | undefined): void {
  useEffect(() => {
    if (user_id === undefined) return;
    // Few devices are subscribed, so the code is loaded only for those. The next page tries again.
    if (isAllowed()) import('./device.ts').then(({ syncSubscription }) => syncSubscription()).catch(() => {});
    return () => {
      if (isAllowed() && session.get()?.user.id !== user_id) void close().catch(() => {});
    };
  }, [user_id]);
}

/** Closes notifications about what no longer waits. Settled questions and sign-ins are not in the list of items. */
export function useClosedNotifications(items: readonly WaitingItem[]): void {
  const before = useRef(items);
  useEffect(() => {
    if (!isAllowed()) return;
    const open = new Set(items.filter((item) => item.open).map(tagOf));
    const over = [...before.current, ...items].map(tagOf).filter((tag) => !open.has(tag));
    before.current = items;
    void close(new Set(over)).catch(() => {});
  }, [items]);
}

function tagOf({ kind, id }: WaitingItem): string {
  return notificationTag(kind, id);
}

function isAllowed(): boolean {
  return 'Notification' in window && Notification.permission === 'granted';
}

/** Without `tags`, closes all. */
async function close(tags?: ReadonlySet<string>): Promise<void> {
  const worker = await navigator.serviceWorker?.getRegistration();
  for (const shown of (await worker?.getNotifications()) ?? []) {
    if (!tags || tags.has(shown.tag)) shown.close();
  }
}
