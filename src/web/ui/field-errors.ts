/** Assigns an error to the field it is about: the server's messages begin with the name of the field. */
import { errorMessage } from '../api/client.ts';

export function assignErrorToField<F extends string>(
  error: unknown,
  fields: readonly F[],
): { [field in F]?: string } & { rest?: string } {
  if (!error) return {};
  const message = errorMessage(error);
  const field = fields.find((name) => new RegExp(`^${name}\\b`).test(message));
  return { [field ?? 'rest']: message } as { [field in F]?: string } & { rest?: string };
}
