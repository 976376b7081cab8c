/** API calls with the session's token. */

import type { Answer } from '../../api/route.ts';
import type { OperationId, RouteOf } from '../../api/routes.ts';
import { type CallArgs, Client, Unreachable } from '../../client/client.ts';
import { Problem } from '../../core/problem.ts';
import { earlyFetch } from '../early.ts';
import { endsSession } from './ends-session.ts';
import { renewing } from './renewing.ts';
import { session } from './session.ts';

export type Answered<Op extends OperationId> = Answer<RouteOf<Op>>;
type Args<Op extends OperationId> =
  Record<never, never> extends CallArgs<Op> ? [args?: CallArgs<Op>] : [args: CallArgs<Op>];

let cached: { token: string | null; client: Client } | null = null;

/** A client with the current session's token, or without a token. */
export function client(): Client {
  const token = session.get()?.token ?? null;
  if (cached?.token !== token)
    cached = { token, client: new Client({ url: location.origin, token, fetch: earlyFetch }) };
  return cached!.client;
}

/** Throws the server's `Problem`, or `Unreachable`. An error that invalidates the token ends the session. */
export async function call<Op extends OperationId>(operation: Op, ...args: Args<Op>): Promise<Answered<Op>> {
  return guarded(() => client().call(operation, ...args));
}

/** The type of one item of an operation's list. */
export type ItemOf<Op extends OperationId> =
  Answered<Op> extends infer A ? (A extends { items: (infer I)[] } ? I : never) : never;
type ListOperation = { [Op in OperationId]: ItemOf<Op> extends never ? never : Op }[OperationId];

/** Reads every page of a list. */
export async function all<Op extends ListOperation>(operation: Op, ...args: Args<Op>): Promise<ItemOf<Op>[]> {
  const list = client().all as (operation: Op, ...args: Args<Op>) => AsyncIterable<ItemOf<Op>>;
  return guarded(async () => {
    const items: ItemOf<Op>[] = [];
    for await (const item of list.call(client(), operation, ...args)) items.push(item);
    return items;
  });
}

/** Returns the response itself, for data that is not JSON. */
export async function open<Op extends OperationId>(operation: Op, args: CallArgs<Op>): Promise<Response> {
  return guarded(() => client().open(operation, args));
}

async function guarded<T>(request: () => Promise<T>): Promise<T> {
  const before = session.get();
  try {
    return await request();
  } catch (error) {
    if (!before || !endsSession(error)) throw error;
    const { token, user } = before;
    // Another tab may have renewed the token meanwhile. The server rejected the old one before doing anything.
    if (session.reload()?.token === token) await renewing(async () => {});
    const now = session.reload();
    // Never as another user, who may have signed in there.
    if (now && now.token !== token && now.user.id === user.id) return request();
    session.end(token);
    throw error;
  }
}

/** A new idempotency key. Use one per user action, so that a retry has no second effect. */
export function newKey(): string {
  // `randomUUID` exists in secure contexts only.
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('');
}

/** The message to show for an error: the server's own if it sent one. */
export function errorMessage(error: unknown): string {
  if (error instanceof Problem) return error.message;
  if (error instanceof Unreachable)
    return 'The service is not responding. Check that it is running and try again.';
  return error instanceof Error ? error.message : String(error);
}
