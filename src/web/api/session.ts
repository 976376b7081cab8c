/**
 * Who is signed in here. The token lies in this origin's storage, never in a URL; every tab hears when it changes. Only
 * two answers of the server end it: `missing authorization token` and `invalid token`.
 */
import { useSyncExternalStore } from 'react';
import type { Answer } from '../../api/route.ts';
import type { RouteOf } from '../../api/routes.ts';
import { SESSION_KEY } from './session-key.ts';

/** An end that moves by less than this when a token is renewed does not move. */
const MOVED_MS = 60_000;

type SignedIn = Answer<RouteOf<'login'>>;

export interface Session {
  token: string;
  /** Unix milliseconds; when the token ends unless it is used. */
  expires_at: number;
  /** Unix milliseconds; when it was given out. */
  since?: number;
  /** Renewing does not move its end any more. */
  last?: boolean;
  user: SignedIn['user'];
}

const listeners = new Set<() => void>();
let current: Session | null = read();

function read(): Session | null {
  try {
    const found = JSON.parse(localStorage.getItem(SESSION_KEY) ?? 'null') as Session | null;
    return typeof found?.token === 'string' && typeof found.user?.username === 'string' ? found : null;
  } catch {
    return null;
  }
}

function set(next: Session | null): void {
  current = next;
  if (next) localStorage.setItem(SESSION_KEY, JSON.stringify(next));
  else localStorage.removeItem(SESSION_KEY);
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
  /** The server says who this is now, for example under another role. */
  know(user: SignedIn['user']): void {
    const { id, username, role, created_at } = user;
    session.look();
    if (current && JSON.stringify(current.user) !== JSON.stringify({ id, username, role, created_at }))
      set({ ...current, user: { id, username, role, created_at } });
  },
  /** What another tab has stored, before the browser tells of it. */
  look(): Session | null {
    const stored = read();
    if (stored?.token !== current?.token) {
      current = stored;
      for (const listener of listeners) listener();
    }
    return current;
  },
  /** `token`: only if it is still the one in use; an answer may be late. */
  end(token?: string): void {
    session.look();
    if (token === undefined || current?.token === token) set(null);
  },
  subscribe(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
};

export function useSession(): Session | null {
  return useSyncExternalStore(session.subscribe, session.get);
}
