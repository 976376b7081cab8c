/** Child process of `faults.test.ts`. It writes and ingests until it is killed, and prints what was acknowledged. */
import { writeSync } from 'node:fs';
import { silentLog } from '../base/log.ts';
import { openSqlite } from './sqlite.ts';
import { batch } from './testing.ts';

const [path, run] = process.argv.slice(2) as [string, string];
const store = await openSqlite({ path, log: silentLog });

function acknowledge(line: string): void {
  try {
    writeSync(1, `${line}\n`);
  } catch (error) {
    // The reader is behind, and the pipe is full: this one counts as not acknowledged.
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
  }
}

async function writes(worker: number): Promise<void> {
  for (let i = 0; ; i++) {
    const key = `${run}-${worker}-${i}`;
    await store.write((tx) => tx.run(tx.sql.insertInto('meta').values({ key, value: '' })));
    acknowledge(`write ${key}`);
  }
}

async function ingests(): Promise<void> {
  const spool = await store.read((r) =>
    r.get(r.sql.selectFrom('spools').select('offset').where('stream', '=', 1)),
  );
  for (let from = spool?.offset ?? 0; ; ) {
    const made = batch('agt_1', 'ses_1', from, [`${from}\n`, 'x'.repeat(from % 9_000)]);
    const { last_seq } = await store.ingest(made);
    from = made.to;
    acknowledge(`ingest ${last_seq} ${from}`);
  }
}

await Promise.all([writes(1), writes(2), writes(3), ingests()]);
