/** Asks a node for its health in one authenticated call, over a link or a separate connection. */
import { type CallOptions, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import type { NodeHealth } from '../../core/node.ts';
import { NodeService, type Speaks } from '../proto/node_pb.ts';
import { safeInteger, TIME_HEADER, toProblem } from '../wire.ts';

export interface RemoteHealth extends NodeHealth {
  node_id: string;
  speaks: Speaks | undefined;
  has_default_root: boolean;
  /** Why the requested root cannot be used on the node; null if it can, or if none was requested. */
  worktree_root_problem: string | null;
}

/** `onTime` receives the node's clock (Unix ms) from any answer, including a rejection. Throws a Problem. */
export async function askHealth(
  transport: Transport,
  worktree_root: string | null,
  options: CallOptions,
  onTime: (time_ms: number) => void = () => {},
): Promise<RemoteHealth> {
  const node = createClient(NodeService, transport);
  try {
    const health = await node.getHealth(
      worktree_root === null ? {} : { worktreeRoot: worktree_root },
      options,
    );
    onTime(safeInteger(health.timeMs));
    const { path = '', freeBytes = 0n, totalBytes = 0n, startsAllowed = false } = health.disk ?? {};
    return {
      node_id: health.nodeId,
      speaks: health.speaks,
      version: health.speaks?.version ?? '',
      uptime_seconds: safeInteger(health.uptimeSeconds),
      sessions_live: health.sessionsLive,
      disk: {
        path,
        free_bytes: safeInteger(freeBytes),
        total_bytes: safeInteger(totalBytes),
        starts_allowed: startsAllowed,
      },
      has_default_root: health.hasDefaultRoot,
      worktree_root_problem: health.worktreeRootProblem ?? null,
    };
  } catch (error) {
    const time = error instanceof ConnectError ? error.metadata.get(TIME_HEADER) : null;
    if (time !== null && /^\d+$/.test(time)) onTime(Number(time));
    throw toProblem(error);
  }
}
