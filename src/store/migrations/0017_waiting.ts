/**
 * Since when a step waits for an answer, and an agent for a sign-in. The latest event of a step that already waits is the
 * one that made it wait.
 */
export const sql = `
ALTER TABLE run_steps ADD COLUMN waiting_since INTEGER;
UPDATE run_steps SET waiting_since = coalesce(
  (SELECT max(run_events.ts) FROM run_events
    WHERE run_events.run_num = run_steps.run_num AND run_events.type = 'step'
      AND json_extract(run_events.data, '$.step_key') = run_steps.step_key),
  started_at,
  (SELECT created_at FROM runs WHERE runs.num = run_steps.run_num),
  0
) WHERE status = 'input_required';
CREATE INDEX run_steps_waiting_since ON run_steps(waiting_since, num) WHERE waiting_since IS NOT NULL;
ALTER TABLE agents ADD COLUMN sign_in_since INTEGER;
UPDATE agents SET sign_in_since = updated_at WHERE status = 'running' AND EXISTS (
  SELECT 1 FROM sessions JOIN acp_states ON acp_states.session_num = sessions.num
    WHERE sessions.id = agents.session_id AND json_extract(acp_states.state, '$.phase') = 'auth_required'
);
CREATE INDEX agents_sign_in ON agents(sign_in_since) WHERE sign_in_since IS NOT NULL;
`;
