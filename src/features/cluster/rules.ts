/** Control planes that share a database, and how their state follows from their heartbeats. */

export const planeStates = ['active', 'standby', 'silent'] as const;
export type PlaneState = (typeof planeStates)[number];

export interface PlaneRecord {
  id: string;
  name: string;
  state: PlaneState;
  version: string;
  address: string | null;
  started_at: string;
  last_seen_at: string;
}

/** A plane without a heartbeat for this long is silent. There is one every second. */
export const SILENT_MS = 10_000;

interface Heartbeat {
  /** The number of its claim; null while it stands by. A later claim has a higher number. */
  claim: number | null;
  beat_at: number;
}

/** The state of a plane, from its last heartbeat and those of all planes. */
function stateOf(plane: Heartbeat, all: readonly Heartbeat[]): PlaneState {
  const now = Math.max(...all.map(({ beat_at }) => beat_at));
  const last_claim = Math.max(...all.map(({ claim }) => claim ?? 0));
  // A plane that was replaced is silent, even if that was a moment ago.
  if (now - plane.beat_at > SILENT_MS || (plane.claim !== null && plane.claim < last_claim)) return 'silent';
  return plane.claim === null ? 'standby' : 'active';
}

/** The planes with their states, except silent ones that were started again under the same name. */
export function withStates<Plane extends Heartbeat & { name: string; started_at: number }>(
  planes: readonly Plane[],
): (Plane & { state: PlaneState })[] {
  const all = planes.map((plane) => ({ ...plane, state: stateOf(plane, planes) }));
  const alive = all.filter(({ state }) => state !== 'silent');
  const wasStartedAgain = (plane: Plane) =>
    alive.some(({ name, started_at }) => name === plane.name && started_at > plane.started_at);
  return all.filter((plane) => plane.state !== 'silent' || !wasStartedAgain(plane));
}

/** How many planes are in each state. */
export function countStates(planes: readonly { state: PlaneState }[]): Record<PlaneState, number> {
  const counts = { active: 0, standby: 0, silent: 0 };
  for (const { state } of planes) counts[state]++;
  return counts;
}
