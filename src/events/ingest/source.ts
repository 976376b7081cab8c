/** What ingest reads from and commits to, and how far a session is committed. */
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { StreamName } from '../../core/event.ts';
import type { Node, SessionFact } from '../../core/node.ts';
import type { Redactor } from '../../core/redaction.ts';
import type { Store } from '../../store/store.ts';
import type { Piece } from './frames.ts';

/** How far a stream is committed. `offset` counts the stream's bytes; `offset - base` is the position in the spool file. */
export interface StreamCursor {
  offset: number;
  base: number;
  /** The last ≤ 64 committed bytes. */
  tail: Uint8Array;
  /** How many bytes of output the committed bytes became. */
  output: number;
}

export interface SessionCursor {
  session_id: string;
  agent_id: string;
  owner_id: string;
  streams: Record<StreamName, StreamCursor>;
  /** Number of the last handled fact. */
  fact: number;
  /** For an agent that speaks ACP; `spilling`: a line that is too long is not finished. Null: stdout is plain lines. */
  acp: { spilling: boolean } | null;
  /** Redacts the session's output; called before each read. Null: nothing to redact. */
  redactor(): Redactor | null;
}

/** Pieces of an ACP stdout, which become events together with the new offset `to`. */
export interface FrameBatch {
  agent_id: string;
  session_id: string;
  from: number;
  to: number;
  tail: Uint8Array;
  ts_ms: number;
  pieces: readonly Piece[];
  spilling: boolean;
}

export interface IngestOptions {
  node: Node;
  store: Store;
  clock: Clock;
  log: Logger;
  /** Loads the committed cursor of a session; null if the plane no longer follows it. */
  load(session_id: string): Promise<SessionCursor | null>;
  /** Commits the effects of a fact together with its number. */
  settle(session_id: string, fact: SessionFact): Promise<void>;
  /** Commits frames, their effects, and the offset. Throws `StaleBatch` like `Store.ingest`. */
  frames(batch: FrameBatch): Promise<unknown>;
  /** Commits that a spool lost bytes: its current beginning corresponds to the stream's committed offset. */
  rebase(session_id: string, stream: StreamName): Promise<void>;
  /** How long the harmless beginning of a secret is held back, in milliseconds. */
  hold_ms?: number;
  /** Memory for unfinished lines of all conversations in ACP together, in bytes. */
  waiting_bytes_max?: number;
}
