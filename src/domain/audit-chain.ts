/**
 * How audit records hang together (pure): each one's hash is SHA-256 over the hash of the record before, 32 bytes, and
 * this record's content as a JSON array. Who has the records can follow the chain, with or without the service.
 */
import { createHash } from 'node:crypto';
import type { AuditRecord } from './audit.ts';

/** What is hashed of a record, in this order. */
export interface AuditContent {
  id: number;
  /** Unix milliseconds. */
  ts: number;
  level: string;
  event: string;
  agent_id: string | null;
  user_id: string | null;
  ip: string | null;
  workdir: string | null;
  /** JSON. */
  details: string;
}

/** What stands before the first record. */
export const GENESIS: Uint8Array = new Uint8Array(32);

export function auditHash(before: Uint8Array, content: AuditContent): Buffer {
  const { id, ts, level, event, agent_id, user_id, ip, workdir, details } = content;
  const text = JSON.stringify([id, ts, level, event, agent_id, user_id, ip, workdir, details]);
  return createHash('sha256').update(before).update(text).digest();
}

/** The content of a record as clients get it. */
export function contentOf({ timestamp, details, hash: _, ...rest }: AuditRecord): AuditContent {
  return { ...rest, ts: Date.parse(timestamp), details: JSON.stringify(details) };
}
