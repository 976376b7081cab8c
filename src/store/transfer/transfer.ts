/**
 * Copies all rows of a database into an empty one of the other kind, reads the copy, and compares it with what was read from
 * the original. The caller makes the copy visible afterwards, so that an interrupted transfer has no effect.
 */
import { createHash } from 'node:crypto';
import { type Row, type TransferTable, transferTables } from './tables.ts';

export interface TransferSource {
  /** All rows of a table in any order, in batches of limited size. Of `segment_blocks`, only those of recorded segments. */
  batches(table: TransferTable): AsyncIterable<readonly Row[]>;
  /**
   * For tables that never assign a number twice: the highest one that was ever assigned. Other tables may be missing.
   */
  lastNumbers(): Promise<ReadonlyMap<string, number>>;
}

/** What it inserts takes effect only when the caller completes it. */
export interface TransferTarget extends TransferSource {
  /** How the database stores a value, if it cannot store it as it is. */
  stored(value: unknown): unknown;
  /** Inserts rows. The blocks of a segment come one after the other, in order. */
  insert(table: TransferTable, rows: readonly Row[]): Promise<void>;
  /** Called once after the last row. The numbers of new rows continue after these. */
  continueNumbers(last: ReadonlyMap<string, number>): Promise<void>;
}

export interface TransferProgress {
  table: string;
  /** Rows of all tables so far. */
  rows: number;
  checking: boolean;
}

export interface TransferOptions {
  source: TransferSource;
  target: TransferTarget;
  /** Keys of `meta` that describe the database itself, which are not copied. */
  own_meta: readonly string[];
  /** Throws its reason at the next batch if it is aborted. */
  signal: AbortSignal;
  onProgress(progress: TransferProgress): void;
}

/** The copy differs from the original. */
export class TransferFailed extends Error {
  constructor(table: string, detail: string) {
    super(`the copy of table ${table} differs from the original: ${detail}; the original is unchanged`);
    this.name = 'TransferFailed';
  }
}

/** Returns how many rows each table has. Throws `TransferFailed`, or the error of a database. */
export async function transfer(options: TransferOptions): Promise<Map<string, number>> {
  const { source, target, own_meta, signal, onProgress } = options;
  const tables = transferTables();
  const copied = new Map<string, TableDigest>();
  let rows = 0;
  const visit = async (side: TransferSource, checking: boolean, use: Use) => {
    rows = 0;
    for (const table of tables) {
      for await (const found of side.batches(table)) {
        signal.throwIfAborted();
        const batch =
          table.name === 'meta' ? found.filter(([key]) => !own_meta.includes(String(key))) : found;
        await use(table, batch);
        rows += batch.length;
        onProgress({ table: table.name, rows, checking });
      }
    }
  };
  for (const { name } of tables) copied.set(name, new TableDigest());
  await visit(source, false, async (table, batch) => {
    const stored = batch.map((row) => row.map((value) => target.stored(value)));
    copied.get(table.name)!.add(stored);
    if (stored.length > 0) await target.insert(table, stored);
  });
  const last = await source.lastNumbers();
  await target.continueNumbers(last);

  const found = new Map(tables.map(({ name }) => [name, new TableDigest()]));
  await visit(target, true, async ({ name }, batch) => found.get(name)!.add(batch));
  for (const [name, digest] of copied) digest.requireEqual(name, found.get(name)!);
  const numbers = await target.lastNumbers();
  for (const [name, number] of last) {
    if ((numbers.get(name) ?? number) < number)
      throw new TransferFailed(name, 'numbers would be assigned twice');
  }
  return new Map([...copied].map(([name, digest]) => [name, digest.rows]));
}

type Use = (table: TransferTable, batch: readonly Row[]) => Promise<void>;

/**
 * Counts rows and adds up a checksum of each, so that the order does not matter. It detects errors of programs and disks, not
 * manipulation.
 */
class TableDigest {
  rows = 0;
  #sum = 0n;

  add(batch: readonly Row[]): void {
    for (const row of batch) {
      const hash = createHash('sha256');
      let text = '';
      for (const value of row) {
        if (value instanceof Uint8Array) {
          text += `bytes ${value.length} `;
          hash.update(value);
        } else text += `${typeof value} ${String(value).length} ${value} `;
      }
      const bytes = hash.update(text).digest();
      this.#sum = BigInt.asUintN(
        128,
        this.#sum + (bytes.readBigUInt64LE(0) << 64n) + bytes.readBigUInt64LE(8),
      );
      this.rows++;
    }
  }

  /** Throws `TransferFailed`. */
  requireEqual(table: string, copy: TableDigest): void {
    if (copy.rows !== this.rows) throw new TransferFailed(table, `${copy.rows} rows instead of ${this.rows}`);
    if (copy.#sum !== this.#sum) throw new TransferFailed(table, 'different contents');
  }
}
