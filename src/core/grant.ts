/** The grant of an API token: scopes, and optionally the agents and teams that it is limited to. */

/**
 * `read`: view records, logs and streams. `operate`: start and stop agents, send input, prompts, mail and messages, answer
 * reviews, command runs. `manage`: create, change and delete agents, teams and tasks, change the user's account. `admin`:
 * what only root may do. `metrics`: `/metrics`. No scope includes another.
 */
export const scopes = ['read', 'operate', 'manage', 'admin', 'metrics'] as const;
export type Scope = (typeof scopes)[number];

/** The agents that a token can access, and the teams, including everything that belongs to them. */
export interface Limits {
  agent_ids: readonly string[];
  team_ids: readonly string[];
}

export interface Grant {
  scopes: readonly Scope[];
  /** Null: everything that the user can access. */
  limits: Limits | null;
}
