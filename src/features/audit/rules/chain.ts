/**
 * The hash chain of the audit log (pure). A record's hash is SHA-256 over the hash of the previous record (32 bytes) and
 * this record's content as a JSON array. Anyone who has the records can verify the chain, with or without the service.
 */
import { createHash } from 'node:crypto';
import type { AuditRecord } from './audit.ts';

/** The hashed fields of a record, in this order. */
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

/** The hash before the first record. */
export const GENESIS: Uint8Array = new Uint8Array(32);

/** The hash of a record. `before`: the hash of the previous record, or `GENESIS`. */
export function auditHash(before: Uint8Array, content: AuditContent): Buffer {
  const { id, ts, level, event, agent_id, user_id, ip, workdir, details } = content;
  const text = JSON.stringify([id, ts, level, event, agent_id, user_id, ip, workdir, details]);
  return createHash('sha256').update(before).update(text).digest();
}

/** The hashed content of a record that a client received. */
export function toContent({ timestamp, details, hash: _, ...rest }: AuditRecord): AuditContent {
  return { ...rest, ts: Date.parse(timestamp), details: JSON.stringify(details) };
}
