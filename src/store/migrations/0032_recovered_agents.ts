/**
 * From which remote node an agent was recovered, and how many of its sessions were: both are limited for each node. Earlier
 * ones are known by their label. The second index has everything that retention needs to add up the logs of each owner.
 */
export const sql = `
ALTER TABLE agents ADD COLUMN recovered_from TEXT;
ALTER TABLE agents ADD COLUMN recovered_sessions INTEGER NOT NULL DEFAULT 0;
UPDATE agents SET recovered_from = node_id WHERE node_id <> 'main' AND labels = '{"recovered":"true"}';
CREATE INDEX agents_recovered ON agents(recovered_from) WHERE recovered_from IS NOT NULL;
CREATE INDEX agents_share ON agents(owner_id, recovered_from);
`;
