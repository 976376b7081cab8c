/** Calls of the API with the session's token. */

import type { Answer } from '../../api/route.ts';
import type { OperationId, RouteOf } from '../../api/routes.ts';
import { type CallArgs, Client, Unreachable } from '../../client/client.ts';
import { Problem } from '../../core/problem.ts';
import { endsSession } from './ends-session.ts';
import { renewing } from './renewing.ts';
import { session } from './session.ts';

export type Answered<Op extends OperationId> = Answer<RouteOf<Op>>;
type Args<Op extends OperationId> =
  Record<never, never> extends CallArgs<Op> ? [args?: CallArgs<Op>] : [args: CallArgs<Op>];

let made: { token: string | null; client: Client } | null = null;

/** The client of the session that is open now, or of nobody. */
export function client(): Client {
  const token = session.get()?.token ?? null;
  if (made?.token !== token) made = { token, client: new Client({ url: location.origin, token }) };
  return made!.client;
}

/** Throws the server's `Problem`, or `Unreachable`; an answer that ends the session ends it. */
export async function call<Op extends OperationId>(operation: Op, ...args: Args<Op>): Promise<Answered<Op>> {
  return guarded(() => client().call(operation, ...args));
}

/** One item of an operation's list. */
export type ItemOf<Op extends OperationId> =
  Answered<Op> extends infer A ? (A extends { items: (infer I)[] } ? I : never) : never;
type ListOperation = { [Op in OperationId]: ItemOf<Op> extends never ? never : Op }[OperationId];

/** Every item of a list, page by page. */
export async function all<Op extends ListOperation>(operation: Op, ...args: Args<Op>): Promise<ItemOf<Op>[]> {
  const list = client().all as (operation: Op, ...args: Args<Op>) => AsyncIterable<ItemOf<Op>>;
  return guarded(async () => {
    const items: ItemOf<Op>[] = [];
    for await (const item of list.call(client(), operation, ...args)) items.push(item);
    return items;
  });
}

/** The response itself, for bytes. */
export async function open<Op extends OperationId>(operation: Op, args: CallArgs<Op>): Promise<Response> {
  return guarded(() => client().open(operation, args));
}

async function guarded<T>(request: () => Promise<T>): Promise<T> {
  const token = session.get()?.token;
  try {
    return await request();
  } catch (error) {
    if (token === undefined || !endsSession(error)) throw error;
    // Another tab may have renewed the token in the meantime: the server refused it, and did nothing yet.
    if (session.look()?.token === token) await renewing(async () => {});
    const now = session.look()?.token;
    if (now !== undefined && now !== token) return request();
    session.end(token);
    throw error;
  }
}

/** One key per thing that a person did, so that a repeated request does it once. */
export function newKey(): string {
  // Random names (`randomUUID`) are for secure contexts only.
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('');
}

/** What to tell a person about a failure, in the server's own words where it has some. */
export function wordsOf(error: unknown): string {
  if (error instanceof Problem) return error.message;
  if (error instanceof Unreachable) return 'The service does not answer.';
  return error instanceof Error ? error.message : String(error);
}
