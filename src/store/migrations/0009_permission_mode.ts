/**
 * Whether an agent is made to ask before it acts, and what was observed. The variables that make an agent ask were part of
 * its own environment before; now its preset sets them at each start, so those that the preset had put there go. Members of
 * teams say which of the two their agents are.
 */
export const sql = `
ALTER TABLE agents ADD COLUMN permission_mode TEXT NOT NULL DEFAULT 'ask'
  CHECK (permission_mode IN ('ask', 'agent'));
ALTER TABLE agents ADD COLUMN asks TEXT NOT NULL DEFAULT 'unknown' CHECK (asks IN ('asks', 'acts', 'unknown'));
UPDATE agents SET env = json_remove(env, '$.INITIAL_AGENT_MODE')
  WHERE preset = 'codex' AND env ->> '$.INITIAL_AGENT_MODE' = 'read-only';
UPDATE agents SET env = json_remove(env, '$.OPENCODE_PERMISSION')
  WHERE preset = 'opencode' AND env ->> '$.OPENCODE_PERMISSION' = '{"edit":"ask","bash":"ask"}';
UPDATE agents SET env = json_remove(env, '$.GOOSE_MODE')
  WHERE preset = 'goose' AND env ->> '$.GOOSE_MODE' = 'approve';
UPDATE teams SET spec = json_set(spec, '$.members', (
  SELECT json_group_array(json(CASE
    WHEN member.value ->> '$.agent' IS NULL THEN member.value
    ELSE json_set(member.value, '$.agent.permission_mode', 'ask')
  END) ORDER BY member.key)
  FROM json_each(teams.spec, '$.members') AS member
));
UPDATE run_specs SET spec = json_set(spec, '$.members', (
  SELECT json_group_array(json(CASE
    WHEN member.value ->> '$.agent' IS NULL THEN member.value
    ELSE json_set(member.value, '$.agent.permission_mode', 'ask')
  END) ORDER BY member.key)
  FROM json_each(run_specs.spec, '$.members') AS member
));
`;
