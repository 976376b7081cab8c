/**
 * Verifies an exported audit log: checks that each record follows from the previous one. Reads lines in ascending or
 * descending order, and keeps at most two records in memory.
 */

import { failed } from '../../../cli/failure.ts';
import type { AuditRecord } from '../rules/audit.ts';
import { auditHash, GENESIS, toContent } from '../rules/chain.ts';

export interface FileVerdict {
  /** How many records are valid, starting with the first. */
  records: number;
  /** If this is above 1, earlier records are missing from the file, so the hash of this record cannot be checked. */
  first_id: number;
  /** The first record that does not follow from the previous one, which may be missing; null if all do. */
  broken_id: number | null;
  /** Hash of the last valid record, hex; empty if there is none. */
  head: string;
  /** Whether a valid record has the requested hash; null if none was requested. */
  holds_head: boolean | null;
}

/** Verifies a file. Throws a Failure for a line that is not a record, and for a file without records. */
export async function verifyFile(lines: AsyncIterable<string>, expected_head?: string): Promise<FileVerdict> {
  const verdict: FileVerdict = {
    ...{ records: 0, first_id: 0, broken_id: null, head: '' },
    holds_head: expected_head === undefined ? null : false,
  };
  let last: AuditRecord | null = null;
  let falling: boolean | undefined;
  const brokenAt = (broken_id: number, head: string) => {
    Object.assign(verdict, { records: 0, broken_id, head });
    if (expected_head !== undefined) verdict.holds_head = false;
  };
  for await (const record of recordsOf(lines)) {
    const { id, hash } = record;
    if (last !== null) {
      falling ??= id < last.id;
      if (!falling && !follows(last, record)) return { ...verdict, broken_id: id };
      // In descending order, the records checked so far come after the break.
      if (falling && !follows(record, last)) brokenAt(last.id, hash);
    }
    if (last === null || falling) verdict.first_id = id;
    if (id === 1 && !isHash(record, GENESIS)) {
      brokenAt(id, '');
      return verdict;
    }
    verdict.records++;
    if (!falling) verdict.head = hash;
    if (expected_head !== undefined) verdict.holds_head ||= hash === expected_head;
    last = record;
  }
  if (last === null) throw failed('the file has no audit records');
  return verdict;
}

function follows(older: AuditRecord, newer: AuditRecord): boolean {
  return newer.id === older.id + 1 && isHash(newer, Buffer.from(older.hash, 'hex'));
}

function isHash(record: AuditRecord, before: Uint8Array): boolean {
  return auditHash(before, toContent(record)).toString('hex') === record.hash;
}

async function* recordsOf(lines: AsyncIterable<string>): AsyncGenerator<AuditRecord> {
  let number = 0;
  for await (const line of lines) {
    number++;
    if (line.trim() === '') continue;
    const record = parse(line);
    if (!record) throw failed(`line ${number} is not an audit record`);
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
