/**
 * Reads that stand at the end of their stream until it grows. What says that a session may have grown has them looked at,
 * and needs no wake of its own where both streams have one: their bytes are the wake.
 */
import { type StreamName, streamNames } from '../domain/event.ts';

export interface StandingRead {
  session_id: string;
  stream: StreamName;
  /** Rests until the stream may have grown; others are being looked at, or wait for it. */
  rests: boolean;
  /** The stream may have grown since the look began. */
  again: boolean;
  /** Another read stands for the stream now. */
  replaced: boolean;
}

export class StandingReads<T extends StandingRead> {
  readonly #sessions = new Map<string, Map<StreamName, T>>();
  readonly #look: (read: T) => void;
  size = 0;

  /** `look` is called with what rests no longer. */
  constructor(look: (read: T) => void) {
    this.#look = look;
  }

  /** In the place of another one for the same stream, which is over. */
  add(read: T): void {
    const streams = this.#sessions.get(read.session_id) ?? new Map<StreamName, T>();
    const before = streams.get(read.stream);
    this.#sessions.set(read.session_id, streams.set(read.stream, read));
    if (!before) this.size++;
    else {
      before.replaced = true;
      this.#rouse(before);
    }
  }

  /** A look found nothing: rests, unless the stream may have grown meanwhile. */
  rest(read: T): void {
    read.rests = true;
    if (read.again) this.#rouse(read);
  }

  delete({ session_id, stream, replaced }: T): void {
    if (replaced) return;
    const streams = this.#sessions.get(session_id)!;
    streams.delete(stream);
    if (streams.size === 0) this.#sessions.delete(session_id);
    this.size--;
  }

  /** The session may have grown. True when whatever it has is told by what stands here. */
  wake(session_id: string): boolean {
    const streams = this.#sessions.get(session_id);
    if (!streams) return false;
    for (const read of streams.values()) {
      read.again = true;
      this.#rouse(read);
    }
    return streams.size === streamNames.length;
  }

  #rouse(read: T): void {
    if (!read.rests) return;
    read.rests = false;
    this.#look(read);
  }
}
