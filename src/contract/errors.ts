/** The one table from an error's kind to its HTTP status. Whatever is not a `Problem` is a 500 with nothing inside. */
import { Problem, type ProblemKind, problemKinds, problems } from '../domain/problem.ts';

export const statusOf = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  too_large: 413,
  unsupported_media_type: 415,
  misdirected: 421,
  rate_limited: 429,
  bad_gateway: 502,
  unavailable: 503,
} as const satisfies Record<ProblemKind, number>;

export const INTERNAL_ERROR = {
  status: 500,
  code: 'internal_error',
  message: 'internal server error',
} as const;

/** The kind that a client infers from an answer's status; null for a status that no kind has. */
export function kindOf(status: number): ProblemKind | null {
  return problemKinds.find((kind) => statusOf[kind] === status) ?? null;
}

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
