/** When to send a failed request again. A record that no longer changes would otherwise stay outdated. */
import { Problem } from '../../core/problem.ts';

const UNANSWERED_MAX = 2;
/** A takeover by another control plane lasts a few seconds. */
const ASKED_MAX = 10;
const DELAY_MS_MAX = 30_000;

/** Errors of a proxy, a control plane or a node that had no answer from the one behind it. */
const UNANSWERED = ['http_502', 'forward_failed', 'node_unreachable'];

/**
 * For reads. Only if the service or a node did not answer, or if the service asked to wait: it is limiting requests, or no control
 * plane is active. After a takeover, the new control plane first has to connect to the nodes.
 */
export function shouldRetry(failures: number, error: Error): boolean {
  if (!(error instanceof Problem) || UNANSWERED.includes(error.code)) return failures < UNANSWERED_MAX;
  return error.retry_after_s !== undefined && failures < ASKED_MAX;
}

/** In milliseconds. */
export function retryDelay(failures: number, error: Error): number {
  const asked_s = error instanceof Problem ? error.retry_after_s : undefined;
  return Math.min((asked_s ?? 2 ** failures) * 1000, DELAY_MS_MAX);
}
