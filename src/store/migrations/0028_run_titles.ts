/** The titles of runs, so that lists need not read their inputs. Null for earlier runs, whose titles are read from their inputs. */
export const sql = `
ALTER TABLE runs ADD COLUMN title TEXT;
`;
