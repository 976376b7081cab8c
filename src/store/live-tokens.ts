/** Checks in a transaction that its caller's token is still valid. Tokens are a feature, but earlier features check them too. */
import { problems } from '../core/problem.ts';
import { preparedQuery } from './prepared-query.ts';
import type { Reader } from './store.ts';

const tokenById = preparedQuery((sql, id: string) =>
  sql.selectFrom('tokens').select('id').where('id', '=', id),
);

/**
 * Throws `invalid token` if the token was revoked after the request was admitted, for example because the caller was demoted
 * or deleted, or got a new password. For what must not happen after that, and for requests that wait before they write.
 */
export async function requireLiveToken(reader: Reader, { token_id }: { token_id: string }): Promise<void> {
  if (!(await reader.get(tokenById(reader, token_id)))) throw problems.invalidToken();
}
