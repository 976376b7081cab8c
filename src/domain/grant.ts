/** What an API token may do of what its user may: scopes, and the agents and teams that it is limited to. */

/**
 * `read`: look at records, logs and streams. `operate`: start and stop agents, send input, prompts, mail and messages, answer
 * reviews, command runs. `manage`: create, change and delete agents, teams and tasks, change the user's account. `admin`: what only
 * root may do. `metrics`: `/metrics`. None of them includes another.
 */
export const scopes = ['read', 'operate', 'manage', 'admin', 'metrics'] as const;
export type Scope = (typeof scopes)[number];

/** The agents, and the teams with all that belongs to them, that a token reaches. */
export interface Limits {
  agent_ids: readonly string[];
  team_ids: readonly string[];
}

export interface Grant {
  scopes: readonly Scope[];
  /** Null: whatever its user reaches. */
  limits: Limits | null;
}
