/** What a node says of itself in one authenticated call, over a link or a connection of its own. */
import { type CallOptions, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { NodeService, type Speaks } from '../contract/gen/node_pb.ts';
import type { NodeHealth } from '../domain/node.ts';
import { TIME_HEADER, toProblem, whole } from './wire.ts';

export interface RemoteHealth extends NodeHealth {
  node_id: string;
  speaks: Speaks | undefined;
  has_default_root: boolean;
  /** Why the asked root cannot be used there; null when it can, or none was asked. */
  worktree_root_problem: string | null;
}

/** `onTime` gets the node's clock (Unix ms) from any answer, also one that refuses. Throws a Problem. */
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
    onTime(whole(health.timeMs));
    const { path = '', freeBytes = 0n, totalBytes = 0n, startsAllowed = false } = health.disk ?? {};
    return {
      node_id: health.nodeId,
      speaks: health.speaks,
      version: health.speaks?.version ?? '',
      uptime_seconds: whole(health.uptimeSeconds),
      sessions_live: health.sessionsLive,
      disk: {
        path,
        free_bytes: whole(freeBytes),
        total_bytes: whole(totalBytes),
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
