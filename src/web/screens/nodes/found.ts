/** Which of the agents that svc knows are installed on a node (pure). */
import type { PresetRecord } from '../../api/queries.ts';

export interface FoundAgents {
  /** Those that need a sign-in last. */
  found: PresetRecord[];
  missing: PresetRecord[];
}

/** Without the presets that come with svc or have no program. Undefined for a node that is too old to report programs. */
export function sortPresets(presets: readonly PresetRecord[]): FoundAgents | undefined {
  const installable = presets.filter(({ argv, install_hint }) => argv !== null && install_hint !== null);
  if (installable.every(({ installed }) => installed === null)) return undefined;
  const found = installable.filter(({ installed }) => installed);
  return {
    found: found.toSorted((a, b) => Number(isSignedOut(a)) - Number(isSignedOut(b))),
    missing: installable.filter(({ installed }) => installed === false),
  };
}

/** Whether somebody has to sign in before the agent works. */
export function isSignedOut({ signed_in }: PresetRecord): boolean {
  return signed_in === 'no';
}
