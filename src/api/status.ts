/**
 * Maps the kind of an error to its HTTP status; any error that is not a `Problem` is a 500 without details. A separate module,
 * so that clients do not bundle the messages of the service.
 */
import { type ProblemKind, problemKinds } from '../core/problem.ts';

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

/** The kind that a client infers from a response status; null if no kind has this status. */
export function kindOf(status: number): ProblemKind | null {
  return problemKinds.find((kind) => statusOf[kind] === status) ?? null;
}
