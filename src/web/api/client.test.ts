import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { BrowserStorage } from '../../testing/browser-storage.ts';
import { SESSION_KEY } from './session-key.ts';

const ana = { id: 'usr_1', username: 'ana', role: 'user', created_at: '2026-01-01T00:00:00Z' } as const;
const leo = { ...ana, id: 'usr_2', username: 'leo' };

let storage: BrowserStorage;
/** The tokens of all requests. */
let tokens: (string | null)[];
beforeEach(() => {
  storage = BrowserStorage.open();
  tokens = [];
  vi.stubGlobal('location', { origin: 'http://127.0.0.1' });
  vi.stubGlobal('fetch', async (_: unknown, { headers }: { headers: Headers }) => {
    const token = headers.get('authorization');
    tokens.push(token);
    return token === 'Bearer new'
      ? Response.json([])
      : Response.json({ error: 'invalid token' }, { status: 401 });
  });
});
afterEach(() => vi.unstubAllGlobals());

/** Ana is signed in with a token that is no longer valid, and another tab stores a new one, of `user`. */
async function callAfterSignIn(user: typeof leo): Promise<unknown> {
  const stored = (token: string, of: unknown) => JSON.stringify({ token, expires_at: 0, user: of });
  storage.items.set(SESSION_KEY, stored('old', ana));
  const { call } = await import('./client.ts');
  storage.change(SESSION_KEY, stored('new', user));
  return call('listAgents').catch(({ message }) => message);
}

test('a request whose token was renewed in another tab is repeated with the new one', async () => {
  expect(await callAfterSignIn({ ...ana })).toEqual([]);
  expect(tokens).toEqual(['Bearer old', 'Bearer new']);
});

test('a request is never repeated as another user who has signed in in another tab', async () => {
  expect(await callAfterSignIn(leo)).toBe('invalid token');
  expect(tokens).toEqual(['Bearer old']);
  // The other user stays signed in.
  expect(storage.items.get(SESSION_KEY)).toContain('leo');
});
