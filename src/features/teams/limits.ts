/** Limits of the feature `teams`. Names end with their unit. */

export const limits = {
  /** Members of a team. */
  team_members_max: 100,
  /** Skills of a member. */
  team_skills_max: 100,
  /** Rounds of a leader. */
  team_rounds_max: 1_000,
  /** Human members of a team. */
  team_humans_max: 1_000,
  /** Steps that one step depends on. */
  step_needs_max: 2_048,
  /** Attempts of a step. */
  step_attempts_max: 100,
  /** Longest time limit of an attempt. */
  step_timeout_seconds_max: 30 * 24 * 60 * 60,
  /** Agents that `svc teams delete` names in the command that deletes them. */
  cli_named_agents_max: 20,
} as const;
