/** For the warning about other agents of the same name, which would otherwise read all agents of the owner. */
export const sql = `
CREATE INDEX agents_name ON agents(owner_id, name, num);
`;
