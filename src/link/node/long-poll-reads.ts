/**
 * Open reads at the end of their stream, which wait until the stream grows. When a session may have grown, its reads
 * are checked. If both of its streams have such a read, the session needs no wake, because the bytes replace it.
 */
import { type StreamName, streamNames } from '../../core/event.ts';

export interface LongPollRead {
  session_id: string;
  stream: StreamName;
  /** Idle until the stream may have grown; other reads are being checked, or wait to be. */
  idle: boolean;
  /** The stream may have grown since the check began. */
  again: boolean;
  /** Another read has replaced this one. */
  replaced: boolean;
}

export class LongPollReads<T extends LongPollRead> {
  readonly #sessions = new Map<string, Map<StreamName, T>>();
  readonly #check: (read: T) => void;
  size = 0;

  /** `check` is called with each read that is no longer idle. */
  constructor(check: (read: T) => void) {
    this.#check = check;
  }

  /** Adds a read and ends the one that it replaces for the same stream. */
  add(read: T): void {
    const streams = this.#sessions.get(read.session_id) ?? new Map<StreamName, T>();
    const before = streams.get(read.stream);
    this.#sessions.set(read.session_id, streams.set(read.stream, read));
    if (!before) this.size++;
    else {
      before.replaced = true;
      this.#wake(before);
    }
  }

  /**
   * Marks a read as idle after a check found nothing, or checks it again if the stream may have grown in the meantime.
   */
  setIdle(read: T): void {
    read.idle = true;
    if (read.again) this.#wake(read);
  }

  /** Removes a read that has ended. */
  delete({ session_id, stream, replaced }: T): void {
    if (replaced) return;
    const streams = this.#sessions.get(session_id)!;
    streams.delete(stream);
    if (streams.size === 0) this.#sessions.delete(session_id);
    this.size--;
  }

  /** The session may have grown. Returns true if the open reads report everything that it has. */
  wake(session_id: string): boolean {
    const streams = this.#sessions.get(session_id);
    if (!streams) return false;
    for (const read of streams.values()) {
      read.again = true;
      this.#wake(read);
    }
    return streams.size === streamNames.length;
  }

  #wake(read: T): void {
    if (!read.idle) return;
    read.idle = false;
    this.#check(read);
  }
}
