/** Handlers that only answer 500 and can be replaced individually, for tests of the HTTP layer alone. */
import { operationIds } from '../api/routes.ts';
import type { Handlers } from '../server/call.ts';

export function fakeHandlers(given: Partial<Handlers>): Handlers {
  const missing = (operation: string) => () => {
    throw new Error(`no fake handler for ${operation}`);
  };
  return {
    ...Object.fromEntries(operationIds.map((operation) => [operation, missing(operation)])),
    ...given,
  } as Handlers;
}
