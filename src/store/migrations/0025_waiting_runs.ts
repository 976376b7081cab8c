/** Since when a run waits for people. The latest event of a run that already waits is the one that made it wait. */
export const sql = `
ALTER TABLE runs ADD COLUMN waiting_since INTEGER;
UPDATE runs SET waiting_since = coalesce(
  (SELECT max(run_events.ts) FROM run_events WHERE run_events.run_num = runs.num),
  started_at,
  created_at
) WHERE status = 'input_required';
CREATE INDEX runs_waiting_since ON runs(waiting_since, num) WHERE waiting_since IS NOT NULL;
`;
