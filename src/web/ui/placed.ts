/** An error's words beside what they are about: the server's messages begin with the name of the field. */
import { wordsOf } from '../api/client.ts';

export function placed<F extends string>(
  error: unknown,
  fields: readonly F[],
): { [field in F]?: string } & { rest?: string } {
  if (!error) return {};
  const words = wordsOf(error);
  const field = fields.find((name) => new RegExp(`^${name}\\b`).test(words));
  return { [field ?? 'rest']: words } as { [field in F]?: string } & { rest?: string };
}
