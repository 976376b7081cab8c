/** The core with what the agents feature adds to it, for its own parts and for the features that work with agents. */
import type { Core } from '../feature.ts';
import { AgentRecords } from './records.ts';
import type { Secrets } from './secrets.ts';
import { SessionWaits } from './session-waits.ts';
import { WorktreePaths } from './worktree-paths.ts';

export interface AgentCore extends Core {
  /** Finds, changes and publishes agents' records. */
  records: AgentRecords;
  /** Waits for changes of sessions. */
  waits: SessionWaits;
  /** What must not appear in the output of a session. */
  secrets: Secrets;
  /** Paths at which worktrees are being created. */
  worktrees: WorktreePaths;
}

export function agentCore(core: Core, secrets: Secrets): AgentCore {
  return {
    ...core,
    records: new AgentRecords(core),
    waits: new SessionWaits(core.store),
    secrets,
    worktrees: new WorktreePaths(),
  };
}

/** A user that does something, or the service itself: its restart policy, adoption, runs. */
export interface Principal {
  user_id: string | null;
  ip: string | null;
}
export const SERVICE: Principal = { user_id: null, ip: null };
