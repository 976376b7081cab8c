/**
 * Migrates a database to the program's schema in numbered steps. Each step runs in its own transaction, which also
 * stores its number (`PRAGMA user_version`). Rejects a database that is newer than the program; never downgrades.
 */
import type { DatabaseSync } from 'node:sqlite';
import { sql as initial } from './migrations/0001_initial.ts';
import { sql as nodes } from './migrations/0002_nodes.ts';
import { sql as acp } from './migrations/0003_acp.ts';
import { sql as teams } from './migrations/0004_teams.ts';
import { sql as passkeys } from './migrations/0005_passkeys.ts';
import { sql as push } from './migrations/0006_push.ts';
import { sql as grants } from './migrations/0007_token_grants.ts';
import { sql as pending } from './migrations/0008_pending.ts';
import { sql as permissionMode } from './migrations/0009_permission_mode.ts';
import { sql as teamEnv } from './migrations/0010_team_env.ts';
import { sql as elicitations } from './migrations/0011_elicitations.ts';
import { sql as subagents } from './migrations/0012_subagents.ts';
import { sql as idempotencyHeaders } from './migrations/0013_idempotency_headers.ts';
import { sql as teamEditors } from './migrations/0014_team_editors.ts';
import { sql as lanes } from './migrations/0015_lanes.ts';
import { sql as agentNames } from './migrations/0016_agent_names.ts';
import { sql as waiting } from './migrations/0017_waiting.ts';
import { sql as keptWorktrees } from './migrations/0018_kept_worktrees.ts';
import { sql as runNumbers } from './migrations/0019_run_numbers.ts';
import { sql as agentSummaries } from './migrations/0020_agent_summaries.ts';
import { sql as keptWorktreeSizes } from './migrations/0021_kept_worktree_sizes.ts';
import { sql as teamKeys } from './migrations/0022_team_keys.ts';
import { sql as agentsSeen } from './migrations/0023_agents_seen.ts';
import { sql as answeredBy } from './migrations/0024_answered_by.ts';
import { sql as waitingRuns } from './migrations/0025_waiting_runs.ts';
import { sql as factCursors } from './migrations/0026_fact_cursors.ts';
import { sql as stoppedByRun } from './migrations/0027_stopped_by_run.ts';
import { sql as runTitles } from './migrations/0028_run_titles.ts';
import { sql as planes } from './migrations/0029_planes.ts';
import { sql as archivedAgents } from './migrations/0030_archived_agents.ts';
import { sql as sharedWorktreeBases } from './migrations/0031_shared_worktree_bases.ts';
import { sql as recoveredAgents } from './migrations/0032_recovered_agents.ts';

/** Step n (counted from 1) migrates version n - 1 to n. Released steps must not change. */
export const migrations: readonly string[] = [
  initial,
  nodes,
  acp,
  teams,
  passkeys,
  push,
  grants,
  pending,
  permissionMode,
  teamEnv,
  elicitations,
  subagents,
  idempotencyHeaders,
  teamEditors,
  lanes,
  agentNames,
  waiting,
  keptWorktrees,
  runNumbers,
  agentSummaries,
  keptWorktreeSizes,
  teamKeys,
  agentsSeen,
  answeredBy,
  waitingRuns,
  factCursors,
  stoppedByRun,
  runTitles,
  planes,
  archivedAgents,
  sharedWorktreeBases,
  recoveredAgents,
];

/** The database has a newer schema than this program. */
export class DatabaseTooNew extends Error {
  constructor(
    name: string,
    found: number,
    known: number,
    advice = 'start a newer svc, or restore a backup with svc restore FILE',
  ) {
    super(
      `database ${name} has schema version ${found}, but this svc supports versions up to ${known}: ${advice}`,
    );
    this.name = 'DatabaseTooNew';
  }
}

/** The number of the last migration that ran on the database; 0 for a new one. */
export function schemaVersion(db: DatabaseSync): number {
  return Number(db.prepare('PRAGMA user_version').get()!.user_version);
}

/**
 * Runs the missing steps, and returns how many there were. They are one transaction: if a step fails, the svc that used the
 * database before can still use it.
 */
export function migrate(db: DatabaseSync, path: string, steps: readonly string[] = migrations): number {
  const found = schemaVersion(db);
  if (found > steps.length) throw new DatabaseTooNew(path, found, steps.length);
  const missing = steps.slice(found);
  if (missing.length === 0) return 0;
  db.exec('BEGIN IMMEDIATE');
  try {
    for (const step of missing) db.exec(step);
    db.exec(`PRAGMA user_version = ${steps.length}`);
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
  return missing.length;
}
