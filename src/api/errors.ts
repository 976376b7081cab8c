/** Creates 400 errors for invalid input; the contract's fixed messages keep their own codes. */
import { Problem, problems } from '../core/problem.ts';

const fixedInvalid = new Map<string, Problem>(
  Object.values(problems)
    .map((make): Problem => make())
    .filter((problem) => problem.kind === 'invalid')
    .map((problem) => [problem.message, problem]),
);

/** The 400 for a message, with the code of the contract if the message is one of its fixed messages. */
export function invalidInput(message: string): Problem {
  return new Problem('invalid', fixedInvalid.get(message)?.code ?? 'invalid_request', message);
}

/** Whether a message is one of the contract's fixed messages, which are shown without a field path. */
export function isFixedMessage(message: string): boolean {
  return fixedInvalid.has(message);
}
