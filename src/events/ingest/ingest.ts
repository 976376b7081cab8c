/**
 * Reads the output of a node's sessions and commits it: bytes become events together with the new offset. Each session
 * has one reader, which is woken without data. The reader passes on the session's facts in order, and its end only
 * after the last byte is committed. This module makes no decisions about agents: `handleFact`, `frames` and `rebase` of
 * `IngestOptions` are transactions of the caller.
 */

import type { StreamName } from '../../core/event.ts';
import type { SessionFact } from '../../core/node.ts';
import { limits } from '../limits.ts';
import { CostlyTurns } from './costly-turns.ts';
import { ReadBuffers } from './read-buffers.ts';
import { SessionReader } from './session-reader.ts';
import type { IngestOptions } from './source.ts';
import type { ReaderOptions } from './stream-reader.ts';
import { UnfinishedLines } from './unfinished-lines.ts';

export class Ingest {
  readonly #options: ReaderOptions;
  readonly #readers = new Map<string, SessionReader>();
  #closing = false;

  constructor(options: IngestOptions) {
    const lines = new UnfinishedLines(options.waiting_bytes_max ?? limits.acp_waiting_bytes_max);
    this.#options = { ...options, buffers: new ReadBuffers(), lines, turns: new CostlyTurns() };
  }

  /**
   * Follows a session from its committed cursor, starting with facts that are already known. For a session that is
   * already followed, it only wakes the reader. Throws if a node reports more sessions or facts than the limits allow.
   */
  follow(session_id: string, facts: readonly SessionFact[] = []): void {
    if (this.#closing) return;
    let reader = this.#readers.get(session_id);
    if (!reader) {
      if (this.#readers.size >= limits.ingest_sessions_max) throw new Error('too many sessions');
      reader = new SessionReader(this.#options, session_id, () => this.#readers.delete(session_id));
      this.#readers.set(session_id, reader);
    }
    for (const fact of facts) reader.add(fact);
    reader.wake();
  }

  /** Passes a fact to its session's reader, which starts if necessary. Throws like `follow`. */
  fact(fact: SessionFact): void {
    this.follow(fact.session_id, [fact]);
  }

  /**
   * Call it when a session may have more output; `stream`: only in this stream. Does nothing for a session that is not
   * followed.
   */
  wake(session_id: string, stream?: StreamName): void {
    this.#readers.get(session_id)?.wake(stream);
  }

  /** Stops following a session whose record was deleted. */
  unfollow(session_id: string): void {
    void this.#readers.get(session_id)?.close();
  }

  /** Stops reading after the commits in progress; the next service process reads the rest. */
  async close(): Promise<void> {
    this.#closing = true;
    await Promise.all([...this.#readers.values()].map((reader) => reader.close()));
  }
}
