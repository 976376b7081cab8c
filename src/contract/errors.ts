/** The 400 for what a client sent: the contract's fixed messages keep their own codes. */
import { Problem, problems } from '../domain/problem.ts';

const fixedInvalid = new Map<string, Problem>(
  Object.values(problems)
    .map((make): Problem => make())
    .filter((problem) => problem.kind === 'invalid')
    .map((problem) => [problem.message, problem]),
);

/** The 400 for a message: with the code that the contract gives it, where the message is one of the contract's own. */
export function invalidInput(message: string): Problem {
  return new Problem('invalid', fixedInvalid.get(message)?.code ?? 'invalid_request', message);
}

/** Whether a message is one of the contract's fixed ones, and so stands alone, without a field's path before it. */
export function isFixedMessage(message: string): boolean {
  return fixedInvalid.has(message);
}
