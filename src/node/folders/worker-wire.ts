/** The messages between a node and a folder worker, one JSON line each. The node sends a hello, then requests. */
import type { ProblemKind } from '../../core/problem.ts';
import type { RunAs } from '../confinement/run-as.ts';

/**
 * The environment variable that marks what a worker starts, so that the node finds it without a namespace or cgroup.
 */
export const MARK = 'SVC_FOLDER_WORKER';

export interface WorkerHello {
  /** What the worker must find at the mounted paths; see `Confinement`. */
  places: string[];
  ids: string[];
  masks: string[];
  entries: string[];
  /** The value of `MARK`. */
  mark: string;
  /** The user whose HOME and name git sees; null: the service's own user. */
  run_as: RunAs | null;
  /** The worker is still root and must become `run_as` first. */
  drop: boolean;
  env: Record<string, string>;
  repo_roots: string[];
}

export interface WorkerRequest {
  id: number;
  job: string;
  request: unknown;
}

export type WorkerAnswer =
  | { id: number; ok: unknown }
  | { id: number; problem: { kind: ProblemKind; code: string; message: string } }
  | { id: number; failure: { code: string | null; message: string } };
