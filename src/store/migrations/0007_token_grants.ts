/**
 * The grants of API tokens: scopes, and the agents and teams that they are limited to (JSON lists; null: no limit, and
 * for sign-ins). Existing tokens keep everything that their user's role allows. Entries of the fleet feed get the id
 * of their agent, for clients that follow it with a limited token.
 */
export const sql = `
ALTER TABLE tokens ADD COLUMN scopes TEXT;
ALTER TABLE tokens ADD COLUMN agent_ids TEXT;
ALTER TABLE tokens ADD COLUMN team_ids TEXT;
UPDATE tokens SET scopes = CASE (SELECT role FROM users WHERE users.id = tokens.user_id)
  WHEN 'root' THEN '["read","operate","manage","admin","metrics"]'
  ELSE '["read","operate","manage"]'
END WHERE kind = 'api';
ALTER TABLE feed ADD COLUMN agent_id TEXT;
UPDATE feed SET agent_id = CASE kind
  WHEN 'agent' THEN json_extract(record, '$.id')
  WHEN 'review' THEN json_extract(record, '$.agent_id')
END;
`;
