/** Handlers that do nothing but answer 500, to be replaced one by one: for tests of the HTTP floor alone. */
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
