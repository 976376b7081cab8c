/**
 * Makes the values of variables in team definitions write-only. Stored records of runs, kept for streams, still contain
 * them, so this step replaces `env` there with `env_keys`, the names. Rows without variables stay as they are.
 */
const withoutValues = (column: string) => `
json_set(${column}, '$.spec.members', json((
  SELECT json_group_array(
    CASE WHEN json_type(member.value, '$.agent.env') = 'object' THEN
      json(json_set(
        json_remove(member.value, '$.agent.env'),
        '$.agent.env_keys',
        json((SELECT json_group_array(variable.key) FROM json_each(member.value, '$.agent.env') AS variable))
      ))
    ELSE json(member.value) END
  )
  FROM json_each(${column}, '$.spec.members') AS member
)))`;

export const sql = `
UPDATE run_events SET data = ${withoutValues('data')}
WHERE type = 'run' AND instr(data, '"env":{"') > 0 AND json_type(data, '$.spec.members') = 'array';
UPDATE feed SET record = ${withoutValues('record')}
WHERE kind = 'run' AND instr(record, '"env":{"') > 0 AND json_type(record, '$.spec.members') = 'array';
`;
