/**
 * The session of this browser. The token is kept in the origin's storage, never in a URL, and every tab is notified when it
 * changes. Only two errors end it: `missing authorization token` and `invalid token`.
 */
import { useSyncExternalStore } from 'react';
import type { Answer } from '../../api/route.ts';
import type { RouteOf } from '../../api/routes.ts';
import { readStored, store } from '../storage.ts';
import { SESSION_KEY } from './session-key.ts';

/** If a renewal extends the session by less than this, the session has reached its absolute limit. */
const MOVED_MS = 60_000;

type SignedIn = Answer<RouteOf<'login'>>;

export interface Session {
  token: string;
  /** When the token expires unless it is renewed, in Unix milliseconds. */
  expires_at: number;
  /** When the token was issued, in Unix milliseconds. */
  since?: number;
  /** Renewing the token no longer moves its end. */
  last?: boolean;
  user: SignedIn['user'];
}

const listeners = new Set<() => void>();
let current: Session | null = read();

function read(): Session | null {
  try {
    const found = JSON.parse(readStored(SESSION_KEY) ?? 'null') as Session | null;
    return typeof found?.token === 'string' && typeof found.user?.username === 'string' ? found : null;
  } catch {
    return null;
  }
}

function set(next: Session | null): void {
  current = next;
  store(SESSION_KEY, next && JSON.stringify(next));
  for (const listener of listeners) listener();
}

globalThis.addEventListener?.('storage', (event) => {
  if (event.key !== SESSION_KEY && event.key !== null) return;
  current = read();
  for (const listener of listeners) listener();
});

export const session = {
  get: (): Session | null => current,
  begin({ token, expires_in, user }: SignedIn): void {
    const since = Date.now();
    set({ token, expires_at: since + expires_in * 1000, since, user });
  },
  renew({ token, expires_in }: { token: string; expires_in: number }): void {
    if (!current) return;
    const since = Date.now();
    const expires_at = since + expires_in * 1000;
    const last = expires_at < current.expires_at + MOVED_MS;
    set({ token, expires_at, since, last, user: current.user });
  },
  /** Updates the user, for example after a role change. */
  know(user: SignedIn['user']): void {
    const { id, username, role, created_at } = user;
    session.reload();
    if (current && JSON.stringify(current.user) !== JSON.stringify({ id, username, role, created_at }))
      set({ ...current, user: { id, username, role, created_at } });
  },
  /** Reads the session that another tab may have stored, before the browser reports it. */
  reload(): Session | null {
    const stored = read();
    if (stored?.token !== current?.token) {
      current = stored;
      for (const listener of listeners) listener();
    }
    return current;
  },
  /** With `token`, ends the session only if it still uses that token: an error may arrive late. */
  end(token?: string): void {
    session.reload();
    if (token === undefined || current?.token === token) set(null);
  },
  subscribe(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
};

export function useSession(): Session | null {
  return useSyncExternalStore(session.subscribe, session.get, session.get);
}
