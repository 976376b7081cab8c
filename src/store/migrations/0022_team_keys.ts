/**
 * Keys of teams, for `DEM-1`. Existing teams get theirs from their name, the oldest team first: the first three letters, then with a
 * fourth letter, then two letters and a number in letters. `features/teams/rules/key.ts` does the same for new teams.
 */
export const sql = `
ALTER TABLE teams ADD COLUMN key TEXT NOT NULL DEFAULT '';

WITH RECURSIVE
letters (num, rest, base) AS (
  SELECT num, upper(name), '' FROM teams
  UNION ALL
  SELECT num, substr(rest, 2), base || CASE WHEN substr(rest, 1, 1) BETWEEN 'A' AND 'Z' THEN substr(rest, 1, 1) ELSE '' END
  FROM letters WHERE rest <> '' AND length(base) < 3
),
bases AS (
  SELECT num, CASE WHEN length(base) < 2 THEN 'TSK' ELSE base END AS base
  FROM letters WHERE rest = '' OR length(base) = 3
),
ranked AS (
  SELECT num, base,
    row_number() OVER (PARTITION BY base ORDER BY num) - 1 AS rank,
    row_number() OVER (PARTITION BY substr(base, 1, 2) ORDER BY num) - 1 AS place
  FROM bases
)
UPDATE teams SET key = CASE
  WHEN rank = 0 THEN base
  WHEN rank < 26 AND length(base) = 3 THEN base || char(65 + rank)
  ELSE substr(base, 1, 2) || char(65 + place / 676 % 26, 65 + place / 26 % 26, 65 + place % 26)
END
FROM ranked WHERE ranked.num = teams.num;

CREATE UNIQUE INDEX teams_by_key ON teams (key);
`;
