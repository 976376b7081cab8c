/**
 * The permission mode of agents, and what was observed. Before, the variables that make an agent ask were part of its
 * own environment; now its preset sets them at each start, so this step removes those that the preset had set. Members
 * of teams get a permission mode too.
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
