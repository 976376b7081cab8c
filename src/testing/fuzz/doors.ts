/** Every way into the service, opened on a plane of its own. */
import { WITH_NODES } from '../agent-node.ts';
import { freePort, TestPlane } from '../plane.ts';
import { openAcpFuzz } from './acp.ts';
import type { Door, DoorName } from './door.ts';
import { openGrpcFuzz } from './grpc.ts';
import { openHttpFuzz } from './http.ts';
import { openRawFuzz } from './raw.ts';

export interface OpenDoors {
  plane: TestPlane;
  doors: Door[];
  close(): Promise<void>;
}

export async function openDoors(names: readonly DoorName[]): Promise<OpenDoors> {
  const actor_port = await freePort();
  const plane = await TestPlane.open({
    env: { ...WITH_NODES, SVC_INTERNAL_GRPC_LISTEN: `127.0.0.1:${actor_port}` },
  });
  const openers: Record<DoorName, () => Promise<Door>> = {
    http: () => openHttpFuzz(plane),
    raw: () => openRawFuzz(plane),
    grpc: () => openGrpcFuzz(plane, actor_port),
    acp: () => openAcpFuzz(plane),
  };
  const doors: Door[] = [];
  const close = async () => {
    for (const door of doors) await door.close();
    await plane.close();
  };
  try {
    for (const name of names) doors.push(await openers[name]());
  } catch (error) {
    await close();
    throw error;
  }
  return { plane, doors, close };
}
