/**
 * Column types of every table, for Kysely. The SQL is in `migrations/`; times are Unix milliseconds, booleans 0 or 1.
 */
import type { AccountsTables } from './tables/accounts.ts';
import type { AgentsTables } from './tables/agents.ts';
import type { EventsTables } from './tables/events.ts';
import type { PlanesTables } from './tables/planes.ts';
import type { TeamsTables } from './tables/teams.ts';
import type { WorkTables } from './tables/work.ts';

export interface Tables
  extends AccountsTables,
    AgentsTables,
    TeamsTables,
    EventsTables,
    WorkTables,
    PlanesTables {
  meta: { key: string; value: string };
}
