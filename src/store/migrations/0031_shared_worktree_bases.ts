/**
 * The agents of a run's member share a worktree. Each recorded the last commit of the agent before it as the base, so that
 * earlier commits did not count as unsaved work. They get the base of the member's first agent; null if that was deleted.
 * All first attempts are found at once: with a subquery for each agent, PostgreSQL may read all attempts each time.
 */
export const sql = `
UPDATE agents SET worktree_base = first_attempt.base
FROM agents AS own LEFT JOIN (
  SELECT run_attempts.run_num, run_attempts.member_id, first_agent.worktree_base AS base
  FROM run_attempts LEFT JOIN agents AS first_agent ON first_agent.id = run_attempts.agent_id
  WHERE run_attempts.num IN (
    SELECT MIN(num) FROM run_attempts WHERE session_id IS NOT NULL OR prompt_id IS NOT NULL
    GROUP BY run_num, member_id
  )
) AS first_attempt ON first_attempt.run_num = own.run_num AND first_attempt.member_id = own.member_id
WHERE own.num = agents.num AND agents.member_id IS NOT NULL AND agents.worktree_base IS NOT NULL;
UPDATE kept_worktrees SET base = NULL WHERE member_id IS NOT NULL;
`;
