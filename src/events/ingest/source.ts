/** The interfaces between ingest and its caller, and the state of a session: how much of it is committed. */
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { StreamName } from '../../core/event.ts';
import type { Link, Node, SessionFact } from '../../core/node.ts';
import type { Redactor } from '../../core/redaction.ts';
import type { Store } from '../../store/store.ts';
import type { FrameBatch } from './frame-batch.ts';

/**
 * How much of a stream is committed. `offset` counts the stream's bytes; `offset - base` is the position in the spool
 * file.
 */
export interface StreamCursor {
  offset: number;
  base: number;
  /** The last ≤ 64 committed bytes. */
  tail: Uint8Array;
  /** Length of the output that resulted from the committed bytes. */
  output: number;
}

export interface SessionCursor {
  session_id: string;
  agent_id: string;
  owner_id: string;
  streams: Record<StreamName, StreamCursor>;
  /** Number of the last handled fact. */
  fact: number;
  /**
   * Set for an agent that speaks ACP; null if stdout consists of plain lines. `spilling`: the current line is too long
   * for a frame, and its bytes become output until it ends.
   */
  acp: { spilling: boolean } | null;
  /** Redacts the session's output. Called before each read. Null: there is nothing to redact. */
  redactor(): Redactor | null;
}

/** A spool that does not have the bytes that follow the committed ones. */
export interface SpoolLoss {
  stream: StreamName;
  /** The committed offset. */
  offset: number;
  /** The link over which the spool was read. */
  link: Link | null;
}

export interface IngestOptions {
  node: Node;
  store: Store;
  clock: Clock;
  log: Logger;
  /** Loads the committed cursor of a session; null if the plane no longer follows it. */
  load(session_id: string): Promise<SessionCursor | null>;
  /** Commits the effects of a fact together with its number. */
  handleFact(session_id: string, fact: SessionFact): Promise<void>;
  /**
   * Commits the first pieces of a batch, at least one, with their effects and the offset. Returns how many. Throws
   * `StaleBatch` like `Store.ingest`.
   */
  frames(batch: FrameBatch): Promise<number>;
  /**
   * Commits that a spool lost bytes. Its current beginning then corresponds to the stream's committed offset. Throws
   * `StaleBatch` if that is no longer the reader's, and `node_unreachable` if there is a newer link to the node.
   */
  rebase(session_id: string, loss: SpoolLoss): Promise<void>;
  /** How long the harmless beginning of a secret is held back, in milliseconds. */
  hold_ms?: number;
  /** Memory for the unfinished lines of all ACP conversations together, in bytes. */
  waiting_bytes_max?: number;
}
