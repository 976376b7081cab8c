/**
 * Reads one session until its end is committed: both streams in parallel, and the session's facts in order.
 *
 *     load cursor ──▶ facts ──▶ read streams ──(nothing left)──▶ wait for a wake ──▶ facts …
 *          ▲            │             │
 *          │            └─(end: every byte is committed)──▶ done
 *          └──(any error: wait, and load the cursor again)
 */
import { sleep, Wake } from '../../base/async.ts';
import { type StreamName, streamNames } from '../../core/event.ts';
import type { SessionEnd, SessionFact } from '../../core/node.ts';
import { isUnreachable, retryLevel } from '../../core/problem.ts';
import { limits } from '../limits.ts';
import type { SessionCursor } from './source.ts';
import { type ReaderOptions, StreamReader } from './stream-reader.ts';

export class SessionReader {
  readonly #options: ReaderOptions;
  readonly #id: string;
  readonly #wake = new Wake();
  readonly #stop = new AbortController();
  /** Facts that have not been handled yet, in order. */
  readonly #facts: SessionFact[] = [];
  readonly #streams: readonly StreamReader[];
  /** Streams that may have bytes to read. */
  readonly #unread = new Set<StreamReader>();
  readonly #done: Promise<void>;
  #cursor: SessionCursor | null = null;

  constructor(options: ReaderOptions, session_id: string, onDone: () => void) {
    this.#options = options;
    this.#id = session_id;
    const session = {
      facts: this.#facts,
      signal: this.#stop.signal,
      wake: () => this.wake(),
      onCommitted: (cursor: SessionCursor) => this.#acknowledge(cursor),
    };
    this.#streams = streamNames.map((name) => new StreamReader(options, session, name));
    this.#done = this.#run().finally(() => {
      for (const stream of this.#streams) stream.close();
      onDone();
    });
  }

  /** Adds a fact unless it is already known. The end comes last, whatever its number. Throws if there are too many. */
  add(fact: SessionFact): void {
    const is_end = isEnd(fact);
    const isKnown = (known: SessionFact) =>
      isEnd(known) === is_end && (is_end || known.number === fact.number);
    if (this.#facts.some(isKnown)) return;
    if (this.#facts.length >= limits.ingest_facts_max) throw new Error('too many facts of one session');
    this.#facts.push(fact);
    this.#facts.sort((a, b) => Number(isEnd(a)) - Number(isEnd(b)) || a.number - b.number);
  }

  /** `stream`: only this stream may have more bytes; absent: both may. */
  wake(stream?: StreamName): void {
    for (const one of this.#streams) if (stream === undefined || one.name === stream) this.#unread.add(one);
    this.#wake.notify();
  }

  /** Resolves after the commits in progress. */
  close(): Promise<void> {
    this.#stop.abort();
    return this.#done;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    let retry_ms = 0;
    /** What was logged since it last succeeded. */
    let logged: string | null = null;
    while (!signal.aborted) {
      try {
        this.#cursor ??= await this.#load();
        if (!this.#cursor) return;
        const ended = await this.#catchUp(this.#cursor);
        retry_ms = 0;
        logged = null;
        if (ended) return;
        await this.#wake.wait(this.#holdMs(), signal);
      } catch (error) {
        // Nothing is lost: the bytes stay in the spool, and the cursor is loaded from the database again.
        await Promise.allSettled(this.#streams.map((stream) => stream.committed()));
        this.#cursor = null;
        if (error === signal.reason) return;
        if (isUnreachable(error)) {
          // The node sends a wake when it is reachable again.
          await this.#wake.wait(undefined, signal);
          continue;
        }
        retry_ms = Math.min(Math.max(retry_ms * 2, limits.ingest_retry_ms), limits.ingest_retry_ms_max);
        const message = errorMessage(error);
        const fields = { session_id: this.#id, err: error, retry_ms };
        if (message !== logged)
          this.#options.log[retryLevel(error, 'warn')](fields, 'cannot commit output; trying again');
        logged = message;
        await sleep(retry_ms, signal);
      }
    }
  }

  async #load(): Promise<SessionCursor | null> {
    const cursor = await this.#options.load(this.#id);
    if (!cursor) return null;
    this.#forgetFacts(cursor.fact);
    for (const stream of this.#streams) {
      stream.reset(cursor);
      this.#unread.add(stream);
    }
    return cursor;
  }

  /** Reads and handles facts until nothing is left to do. Returns true if the session has ended. */
  async #catchUp(cursor: SessionCursor): Promise<boolean> {
    for (let progress = true; progress && !this.#stop.signal.aborted; ) {
      // Handles facts first, because an agent must be shown as running before its first byte.
      if (await this.#handleFacts(cursor)) return true;
      if (cursor.fact === 0 && this.#facts.length === 0) return false;
      const end = endOf(this.#facts);
      progress = await this.#readStreams(end !== null);
      if (end && !progress) {
        // The end reports more bytes than the spools still have. Report them as lost instead of waiting for them.
        for (const stream of this.#streams) await stream.giveUpMissingBytes(end.sizes[stream.name]);
        progress = true;
      }
    }
    for (const stream of this.#streams) await stream.committed();
    return false;
  }

  /**
   * Reads in parallel, to save a round trip: streams that may have more bytes, and those whose held-back bytes are due;
   * after the session's end, both. Most wakes are about one stream, and an empty read of the other took 7 % of a line.
   */
  async #readStreams(has_ended: boolean): Promise<boolean> {
    const due = this.#streams.filter(
      (stream) => has_ended || this.#unread.has(stream) || stream.holdMs() === 0,
    );
    for (const stream of due) this.#unread.delete(stream);
    const reads = await Promise.allSettled(due.map((stream) => stream.commitNext()));
    let progress = false;
    for (const [i, read] of reads.entries()) {
      if (read.status === 'rejected') throw read.reason;
      if (read.value) this.#unread.add(due[i]!);
      progress ||= read.value;
    }
    return progress;
  }

  /**
   * Handles pending facts, but the end only after the last byte is committed. Returns true if the session has ended.
   */
  async #handleFacts(cursor: SessionCursor): Promise<boolean> {
    for (let fact = this.#facts[0]; fact; fact = this.#facts[0]) {
      const end = endOf([fact]);
      if (end && !this.#streams.every((stream) => stream.isComplete(end.sizes[stream.name]))) return false;
      await this.#options.handleFact(this.#id, fact);
      cursor.fact = fact.number;
      this.#forgetFacts(fact.number);
      this.#acknowledge(cursor);
      if (end) return true;
    }
    return false;
  }

  /** Milliseconds until bytes that are held back may be committed; undefined if the reader must wait for a wake. */
  #holdMs(): number | undefined {
    const ms = Math.min(...this.#streams.map((stream) => stream.holdMs()));
    // A timer may fire a little early.
    return Number.isFinite(ms) ? ms + 1 : undefined;
  }

  /** Reports to the node what is committed, so that the node may free it. */
  #acknowledge({ streams: { stdout, stderr }, fact }: SessionCursor): void {
    const sizes = { stdout: stdout.offset - stdout.base, stderr: stderr.offset - stderr.base };
    this.#options.node.committed(this.#id, sizes, fact);
  }

  /**
   * Drops the facts that are committed. The end of a session that the plane still follows is not: if the node's disk lost
   * facts in a power failure or a rollback, the node gives it the number of an earlier one.
   */
  #forgetFacts(up_to: number): void {
    while (this.#facts[0] && this.#facts[0].number <= up_to && !isEnd(this.#facts[0])) this.#facts.shift();
  }
}

function isEnd({ body }: SessionFact): boolean {
  return body.kind === 'ended';
}

/** The session's end if the last of these facts reports it, or null. */
function endOf(facts: readonly SessionFact[]): SessionEnd | null {
  const fact = facts.at(-1);
  return fact?.body.kind === 'ended' ? fact.body.end : null;
}

function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
