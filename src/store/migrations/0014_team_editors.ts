/**
 * `spec_editors`: ids of the users who have changed a team's definition, as a JSON array. It is unknown who made
 * earlier changes, so everyone who could have made them is listed. `state_team`: the team that an agent was created
 * for, even after the team was deleted; it decides where the agent's preset keeps its state.
 */
export const sql = `
ALTER TABLE teams ADD COLUMN spec_editors TEXT NOT NULL DEFAULT '[]';
UPDATE teams SET spec_editors = (
  SELECT json_group_array(people.user_id) FROM (
    SELECT num AS team_num, created_by AS user_id FROM teams
    UNION SELECT team_num, user_id FROM team_humans
  ) AS people WHERE people.team_num = teams.num
);
ALTER TABLE agents ADD COLUMN state_team TEXT;
UPDATE agents SET state_team = coalesce(
  (SELECT id FROM teams WHERE num = agents.team_num), 'team_deleted'
) WHERE member_id IS NOT NULL;
`;
