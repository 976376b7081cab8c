/** Where PostgreSQL is for tests: at `SVC_TEST_POSTGRES_URL`, or in the programs of this machine. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The folder with the programs of the newest installed version. */
function programsFolder(): string | undefined {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).toSorted((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...versions.map((version) => join(debian, version, 'bin')),
    ...(process.env.PATH ?? '').split(':'),
  ];
  const initdb = folders.map((folder) => join(folder, 'initdb')).find(existsSync);
  return initdb === undefined ? undefined : dirname(realpathSync(initdb));
}

export const external_url = process.env.SVC_TEST_POSTGRES_URL;
export const programs = external_url === undefined ? programsFolder() : undefined;
/** Whether tests with PostgreSQL are skipped. In CI they fail. */
export const postgres_missing = external_url === undefined && programs === undefined && !process.env.CI;
if (postgres_missing)
  console.warn(
    'skipping the tests with PostgreSQL: initdb is missing; set SVC_TEST_POSTGRES_URL, or install PostgreSQL',
  );

/** PostgreSQL refuses to run as root. Null for the user of this process. */
export function serverUser(): { uid: number; gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const exists = existsSync('/var/lib/postgresql');
  const entry = execFileSync('getent', ['passwd', exists ? 'postgres' : 'nobody'], { encoding: 'utf8' });
  const [, , uid, gid] = entry.split(':');
  return { uid: Number(uid), gid: Number(gid) };
}
