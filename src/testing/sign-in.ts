/** Sign-ins for tests whose callers did not get their tokens from the service. */
import { hash } from 'node:crypto';
import type { Caller } from '../features/accounts/rules.ts';
import { deleteToken, insertToken } from '../features/tokens/queries.ts';
import type { Store } from '../store/store.ts';
import { addUser } from './team-runs.ts';

/** Stores the callers' users, unless they exist, and their tokens. */
export function signIn(store: Store, ...callers: Caller[]): Promise<void> {
  return store.write(async (tx) => {
    for (const caller of callers) {
      await addUser(tx, caller);
      const { token_id: id, user_id } = caller;
      const times = { created_at: 0, last_used_at: 0, idle_expires_at: null, expires_at: null };
      const client = { name: null, user_agent: null, ip: null, password_at: null };
      const grant = { scopes: null, agent_ids: null, team_ids: null };
      const secret = hash('sha256', id, 'buffer');
      await insertToken(tx, { id, user_id, kind: 'session', hash: secret, ...times, ...client, ...grant });
    }
  });
}

/** Revokes the caller's token. */
export async function signOut(store: Store, { token_id }: Caller): Promise<void> {
  await store.write((tx) => deleteToken(tx, token_id));
}
