/** How work that failed is repeated: after pauses that double, and with a line in the log only when the reason is new. */
import type { Logger } from '../base/log.ts';
import { explainRefusal, Problem, retryLevel } from '../core/problem.ts';
import { limits } from './limits.ts';

/** Thrown by a handler that must wait for something else to happen. The work is repeated soon. */
export class NotYet extends Error {}

/** The last failure of some work that is repeated. */
export interface Failure {
  /** How many times in a row the work has failed. */
  count: number;
  message: string;
  /** The pause before the next try. */
  pause_ms: number;
}

/** Why work failed, for people who cannot read the log. */
export function explainFailure(error: unknown): string {
  if (error instanceof Problem) return explainRefusal(error);
  return error instanceof NotYet ? error.message : 'unexpected error; see the log of the control plane';
}

export interface FailureOptions {
  first_pause_ms: number;
  /** The longest pause after a failure that is expected to pass. */
  pause_ms_max: number;
  /** The message for the log. */
  text: string;
}

/**
 * Returns the failure that follows `before`, the previous one of the same work, and logs it with `about`. An unexpected error
 * may last until an upgrade, so its pauses grow up to `limits.unexpected_pause_ms_max`.
 */
export function nextFailure(
  before: Failure | undefined,
  error: unknown,
  { first_pause_ms, pause_ms_max, text }: FailureOptions,
  log: Logger,
  about: object,
): Failure {
  const is_expected = error instanceof Problem || error instanceof NotYet;
  const longest_ms = is_expected ? pause_ms_max : limits.unexpected_pause_ms_max;
  const pause_ms = Math.min(Math.max((before?.pause_ms ?? 0) * 2, first_pause_ms), longest_ms);
  const message = error instanceof Error ? error.message : String(error);
  if (message !== before?.message)
    log[retryLevel(error, is_expected ? 'warn' : 'error')](
      { err: error, ...about, retry_ms: pause_ms },
      text,
    );
  return { count: (before?.count ?? 0) + 1, message, pause_ms };
}
