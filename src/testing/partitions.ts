/**
 * Two planes that share a database, a node and PostgreSQL, each on a network of its own: the active plane is cut off from all
 * others, as if a switch had failed, replaced, and connected again. Then the same happens to the plane that replaced it.
 */
import { runUnshared } from './namespaces.ts';

export interface Partition {
  /** The name of the plane that was cut off. */
  name: string;
  /** From the cut until the other plane was active and answered. */
  takeover_ms: number;
  /** How the plane ended when it was connected again, and its last line on the standard error output. */
  exit_code: number | null;
  last_line: string;
  /** How many links the node accepted after the takeover, until the plane that was cut off stood by. */
  later_links: number;
}

/** Ends everything it started, even when `signal` aborts it. Rejects with the error output, also if output was lost. */
export async function partitionPlanes(signal?: AbortSignal): Promise<Partition[]> {
  return runUnshared(new URL('./partitions-child.ts', import.meta.url), undefined, signal);
}
