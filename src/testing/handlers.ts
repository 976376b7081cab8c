/** Handlers that answer 500 unless a test replaces them, for tests of the HTTP layer alone. */
import { operationIds } from '../api/routes.ts';
import type { Handlers } from '../server/call.ts';

export function fakeHandlers(handlers: Partial<Handlers>): Handlers {
  const missing = (operation: string) => () => {
    throw new Error(`no fake handler for ${operation}`);
  };
  return {
    ...Object.fromEntries(operationIds.map((operation) => [operation, missing(operation)])),
    ...handlers,
  } as Handlers;
}
