/** Finds the unit tests whose database is SQLite or PostgreSQL, see `src/testing/test-store.ts`. */
import { globSync, readFileSync } from 'node:fs';

/** What opens such a database. */
const OPENS = /\bopenTestStore\b|\b\w+Fixture\b/;
/** Not only tests with `sqliteTest`. */
const TESTS = /^(test|it|describe)\b/m;

/** The paths of the files in the current folder, which is the repository. */
export function storeTests(): string[] {
  return globSync('src/**/*.test.ts')
    .filter((path) => {
      const text = readFileSync(path, 'utf8');
      return OPENS.test(text) && TESTS.test(text);
    })
    .toSorted();
}
