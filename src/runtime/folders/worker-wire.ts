/** The lines between a node and a folder worker: the first one from the node is a hello, the others are requests. */
import type { ProblemKind } from '../../domain/problem.ts';
import type { RunAs } from '../run-as.ts';

export interface WorkerHello {
  /** What the paths that were mounted have to be; see `Confinement`. */
  places: string[];
  ids: string[];
  masks: string[];
  entries: string[];
  /** Whose HOME and name git sees; null: the service's own. */
  run_as: RunAs | null;
  /** The worker is still root and has to become `run_as` before it does anything. */
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
