/** Opens the fuzzers on a new plane. */
import { WITH_NODES } from '../agent-node.ts';
import { freePort, TestPlane } from '../plane.ts';
import { openAcpFuzz } from './acp.ts';
import type { EntryPoint, EntryPointName } from './entry-point.ts';
import { openGrpcFuzz } from './grpc.ts';
import { openHttpFuzz } from './http.ts';
import { openRawFuzz } from './raw.ts';

export interface OpenEntryPoints {
  plane: TestPlane;
  entries: EntryPoint[];
  close(): Promise<void>;
}

export async function openEntryPoints(names: readonly EntryPointName[]): Promise<OpenEntryPoints> {
  const actor_port = await freePort();
  const plane = await TestPlane.open({
    env: { ...WITH_NODES, SVC_INTERNAL_GRPC_LISTEN: `127.0.0.1:${actor_port}` },
  });
  const openers: Record<EntryPointName, () => Promise<EntryPoint>> = {
    http: () => openHttpFuzz(plane),
    raw: () => openRawFuzz(plane),
    grpc: () => openGrpcFuzz(plane, actor_port),
    acp: () => openAcpFuzz(plane),
  };
  const entries: EntryPoint[] = [];
  const close = async () => {
    for (const entry of entries) await entry.close();
    await plane.close();
  };
  try {
    for (const name of names) entries.push(await openers[name]());
  } catch (error) {
    await close();
    throw error;
  }
  return { plane, entries, close };
}
