/**
 * The agents of a run's member share a worktree. Each recorded the last commit of the agent before it as the base, so that
 * earlier commits did not count as unsaved work. They get the base of the member's first agent; null if that was deleted.
 */
export const sql = `
UPDATE agents SET worktree_base = (
  SELECT first_agent.worktree_base
  FROM run_attempts LEFT JOIN agents AS first_agent ON first_agent.id = run_attempts.agent_id
  WHERE run_attempts.run_num = agents.run_num AND run_attempts.member_id = agents.member_id
    AND (run_attempts.session_id IS NOT NULL OR run_attempts.prompt_id IS NOT NULL)
  ORDER BY run_attempts.num LIMIT 1
) WHERE member_id IS NOT NULL AND worktree_base IS NOT NULL;
UPDATE kept_worktrees SET base = NULL WHERE member_id IS NOT NULL;
`;
