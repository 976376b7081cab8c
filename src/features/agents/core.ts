/** The core, extended by the agents feature for its own modules and for the features that work with agents. */
import type { Tx } from '../../store/store.ts';
import type { AuditEvent } from '../audit/rules/audit.ts';
import type { Core } from '../feature.ts';
import type { AgentRow } from './queries/agents.ts';
import { AgentRecords } from './records.ts';
import type { Secrets } from './secrets.ts';
import { SessionWaits } from './session-waits.ts';
import { StartPause } from './start-pause.ts';
import { Summaries } from './summaries.ts';
import { WorktreePaths } from './worktree-paths.ts';

/** What the agents' modules share. */
export interface AgentBase extends Core {
  /** Finds, changes and publishes agents' records. */
  records: AgentRecords;
  /** Waits for changes of sessions. */
  waits: SessionWaits;
  /** The secrets to redact in the output of sessions. */
  secrets: Secrets;
  /** Paths at which worktrees are being created. */
  worktrees: WorktreePaths;
  /** The ids of agents that are being deleted, which cannot start. Only the active plane deletes and starts agents. */
  deleting: Set<string>;
  /** Keeps agents from starting while all are stopped. */
  starts: StartPause;
}

export interface AgentCore extends AgentBase {
  /** Keeps the summaries in records up to date. */
  summaries: Summaries;
}

export function agentCore(core: Core, secrets: Secrets): AgentCore {
  const own: AgentBase = {
    ...core,
    records: new AgentRecords(core),
    waits: new SessionWaits(core.store),
    secrets,
    worktrees: new WorktreePaths(),
    deleting: new Set(),
    starts: new StartPause(),
  };
  return { ...own, summaries: new Summaries(own) };
}

/** The user who causes an action, or the service itself: its restart policy, adoption, runs. */
export interface Principal {
  user_id: string | null;
  ip: string | null;
}
export const SERVICE: Principal = { user_id: null, ip: null };

/** Records in the audit log what a principal did to an agent. */
export async function auditAgent(
  { audit }: Pick<Core, 'audit'>,
  tx: Tx,
  event: AuditEvent,
  { id: agent_id, workdir }: AgentRow,
  { user_id, ip }: Principal,
  details: Record<string, unknown>,
): Promise<void> {
  await audit.record(tx, { event, agent_id, workdir, user_id, ip, details });
}
