/**
 * A minimal path with commits: reads a file in chunks of 64 KiB, and inserts each as a row into SQLite with `synchronous = FULL`,
 * with transactions of the same size as in the service. Committed bytes are sent to a socket unchanged.
 */
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { KIB } from '../../src/base/limits.ts';
import { limits } from '../../src/store/limits.ts';
import { readArguments } from './read-arguments.ts';
import { readGroup } from './read-group.ts';

export interface RawPathArgs {
  file: string;
  database: string;
}

const args = await readArguments<RawPathArgs>();
const db = new DatabaseSync(args.database);
db.exec(`PRAGMA page_size = ${limits.database_page_bytes}`);
db.exec('PRAGMA journal_mode = WAL');
db.exec('PRAGMA synchronous = FULL');
db.exec(`PRAGMA wal_autocheckpoint = ${limits.wal_pages_max}`);
db.exec(`PRAGMA cache_size = -${limits.database_cache_bytes / KIB}`);
db.exec('CREATE TABLE raw (id INTEGER PRIMARY KEY, data BLOB NOT NULL)');

const server = createServer({ noDelay: true }, (socket) => void send(socket));
server.listen(0, '127.0.0.1', () => process.send!({ port: (server.address() as { port: number }).port }));

async function send(socket: Socket): Promise<void> {
  const insert = db.prepare('INSERT INTO raw (data) VALUES (?)');
  const file = openSync(args.file, 'r');
  for (let group = readGroup(file); group.length > 0; group = readGroup(file)) {
    db.exec('BEGIN');
    for (const row of group) insert.run(row);
    db.exec('COMMIT');
    if (!socket.write(Buffer.concat(group))) await once(socket, 'drain');
  }
  closeSync(file);
  socket.end();
}
