/**
 * A cursor for each consumer and kind of fact, so that a program leaves kinds that it does not know. Where a consumer was
 * is kept under the empty kind until all its cursors exist; `used_at` 0 lets the next start delete it.
 */
export const sql = `
CREATE TABLE kind_cursors (
  num INTEGER PRIMARY KEY,
  consumer TEXT NOT NULL,
  kind TEXT NOT NULL,
  fact_id INTEGER NOT NULL,
  used_at INTEGER NOT NULL,
  UNIQUE (kind, consumer)
);
INSERT INTO kind_cursors (consumer, kind, fact_id, used_at) SELECT consumer, '', fact_id, 0 FROM fact_cursors;
DROP TABLE fact_cursors;
ALTER TABLE kind_cursors RENAME TO fact_cursors;
`;
