/**
 * An exported audit log by itself: whether each record follows from the one before. Lines are read one after the other, in
 * either order, and never more than two records are held.
 */
import type { AuditRecord } from '../domain/audit.ts';
import { auditHash, contentOf, GENESIS } from '../domain/audit-chain.ts';
import { failed } from './failure.ts';

export interface FileVerdict {
  /** How many records are sound, from the first on. */
  records: number;
  /** Above 1: what stood before it is not in the file, so its own hash is taken as it stands. */
  first_id: number;
  /** The first record that does not follow from the one before it, which may be missing; null: all do. */
  broken_id: number | null;
  /** Hash of the last sound record, hex; empty where none is. */
  head: string;
  /** Whether a sound record has the hash that was asked for; null where none was. */
  holds_head: boolean | null;
}

/** Throws a Failure for a line that is no record, and for a file without any. */
export async function verifyFile(lines: AsyncIterable<string>, wanted?: string): Promise<FileVerdict> {
  const verdict: FileVerdict = {
    ...{ records: 0, first_id: 0, broken_id: null, head: '' },
    holds_head: wanted === undefined ? null : false,
  };
  let last: AuditRecord | null = null;
  let falling: boolean | undefined;
  const breakAt = (broken_id: number, head: string) => {
    Object.assign(verdict, { records: 0, broken_id, head });
    if (wanted !== undefined) verdict.holds_head = false;
  };
  for await (const record of recordsOf(lines)) {
    const { id, hash } = record;
    if (last !== null) {
      falling ??= id < last.id;
      if (!falling && !follows(last, record)) return { ...verdict, broken_id: id };
      // What was sound so far stood above the break.
      if (falling && !follows(record, last)) breakAt(last.id, hash);
    }
    if (last === null || falling) verdict.first_id = id;
    if (id === 1 && !isHash(record, GENESIS)) {
      breakAt(id, '');
      return verdict;
    }
    verdict.records++;
    if (!falling) verdict.head = hash;
    if (wanted !== undefined) verdict.holds_head ||= hash === wanted;
    last = record;
  }
  if (last === null) throw failed('there are no audit records in the file');
  return verdict;
}

function follows(older: AuditRecord, newer: AuditRecord): boolean {
  return newer.id === older.id + 1 && isHash(newer, Buffer.from(older.hash, 'hex'));
}

function isHash(record: AuditRecord, before: Uint8Array): boolean {
  return auditHash(before, contentOf(record)).toString('hex') === record.hash;
}

async function* recordsOf(lines: AsyncIterable<string>): AsyncGenerator<AuditRecord> {
  let number = 0;
  for await (const line of lines) {
    number++;
    if (line.trim() === '') continue;
    const record = parse(line);
    if (!record) throw failed(`line ${number} is no audit record`);
    yield record;
  }
}

function parse(line: string): AuditRecord | null {
  try {
    const record = JSON.parse(line) as AuditRecord;
    const is_record = Number.isSafeInteger(record.id) && typeof record.hash === 'string';
    return is_record && typeof record.details === 'object' ? record : null;
  } catch {
    return null;
  }
}
