/**
 * A minimal path with commits in PostgreSQL: reads a file in chunks of 64 KiB, and copies them as rows into a table with
 * `COPY`, in transactions of the same size as in the service. Committed bytes are sent to a socket unchanged.
 */
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import pg from 'pg';
import { readArguments } from './read-arguments.ts';
import { readGroup } from './read-group.ts';

export interface CopyPathArgs {
  file: string;
  url: string;
}

/** The driver's connection, of which its types lack these functions. */
interface CopyConnection {
  query(sql: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

const HEADER = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
const END = Buffer.from([0xff, 0xff]);

/** A `COPY` in the binary format, which commits. The driver calls the functions. */
class Copy {
  readonly done: Promise<void>;
  readonly #rows: readonly Buffer[];
  #resolve!: () => void;
  #reject!: (error: Error) => void;
  /** The driver replaces it. */
  callback = (): void => {};

  constructor(rows: readonly Buffer[]) {
    this.#rows = rows;
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  submit(connection: unknown): void {
    (connection as CopyConnection).query('COPY raw (data) FROM STDIN (FORMAT binary)');
  }

  handleCopyInResponse(connection: CopyConnection): void {
    connection.sendCopyFromChunk(HEADER);
    for (const row of this.#rows) {
      const head = Buffer.alloc(6);
      head.writeInt16BE(1);
      head.writeInt32BE(row.length, 2);
      connection.sendCopyFromChunk(head);
      connection.sendCopyFromChunk(row);
    }
    connection.sendCopyFromChunk(END);
    connection.endCopyFrom();
  }

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.#resolve();
  }

  handleError(error: Error): void {
    this.#reject(error);
  }
}

const args = await readArguments<CopyPathArgs>();
const client = new pg.Client({ connectionString: args.url });
await client.connect();
await client.query(
  'CREATE TABLE raw (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, data bytea NOT NULL)',
);
await client.query('ALTER TABLE raw ALTER COLUMN data SET STORAGE EXTERNAL');

const server = createServer({ noDelay: true }, (socket) => void send(socket));
server.listen(0, '127.0.0.1', () => process.send!({ port: (server.address() as { port: number }).port }));

async function send(socket: Socket): Promise<void> {
  const file = openSync(args.file, 'r');
  for (let group = readGroup(file); group.length > 0; group = readGroup(file)) {
    const copy = new Copy(group);
    client.query(copy);
    await copy.done;
    if (!socket.write(Buffer.concat(group))) await once(socket, 'drain');
  }
  closeSync(file);
  socket.end();
}
