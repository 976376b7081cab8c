/**
 * Agents on unreachable nodes of every kind: stopped, killed, behind a network that drops all packets, and registered
 * targets that never answered. Each gets stop, restart and delete requests in turn, one after the other. Everything
 * happens in separate namespaces.
 */
import { runUnshared } from './namespaces.ts';

export const unreachableStates = ['killed', 'partitioned', 'black hole', 'stopped', 'closed port'] as const;
export type UnreachableState = (typeof unreachableStates)[number];

/** The statuses in which the plane shows a node over time. A disconnected node gets requests in each of them. */
export type UnreachablePhase = 'connected' | 'suspect' | 'unreachable';

export interface UnreachableOptions {
  states: readonly UnreachableState[];
  /** Number of consecutive requests for each state. */
  n: number;
  phases: readonly UnreachablePhase[];
  /** If a request has no response within this time, the whole run fails. */
  within_ms: number;
}

export interface UnreachableAnswer {
  state: UnreachableState;
  action: 'stop' | 'restart' | 'delete';
  status: number;
  body: unknown;
  /** The `X-Pending` header. */
  pending: string | null;
  ms: number;
}

/** Ends everything it started, even when `signal` aborts it. Rejects with the error output. */
export async function requestUnreachable(
  options: UnreachableOptions,
  signal?: AbortSignal,
): Promise<UnreachableAnswer[]> {
  return runUnshared(new URL('./unreachable-nodes-child.ts', import.meta.url), options, signal);
}
