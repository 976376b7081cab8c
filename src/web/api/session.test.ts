import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { BrowserStorage } from '../../testing/browser-storage.ts';
import { SESSION_KEY } from './session-key.ts';

let storage: BrowserStorage;
let session: typeof import('./session.ts').session;
beforeEach(async () => {
  storage = BrowserStorage.open();
  ({ session } = await import('./session.ts'));
});
afterEach(() => vi.unstubAllGlobals());

const user = { id: 'usr_1', username: 'ana', role: 'user', created_at: '2026-01-01T00:00:00Z' } as const;
const signIn = () =>
  session.begin({ token: 'first', expires_in: 60, user } as Parameters<typeof session.begin>[0]);

test('a renewal in a full storage counts, and another tab can still end the session', () => {
  signIn();
  storage.is_full = true;
  const listener = vi.fn();
  session.subscribe(listener);
  session.renew({ token: 'second', expires_in: 600 });
  expect(listener).toHaveBeenCalledOnce();
  expect(session.reload()?.token).toBe('second');
  storage.change(SESSION_KEY, null)();
  expect(session.get()).toBeNull();
});
