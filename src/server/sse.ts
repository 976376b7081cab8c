/**
 * Serves SSE streams: writes encoded frames to a response for as long as the client reads and its token is valid. It limits
 * streams per user and in total, waits for slow readers instead of buffering, disconnects clients that read nothing, and
 * checks the access of callers periodically and when it may have changed. The end of the connection ends the body (there is no
 * chunked encoding), so that one buffer can be sent unchanged to a thousand sockets.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { limits as sharedLimits } from '../base/limits.ts';
import { Slots } from '../base/slots.ts';
import { problems } from '../core/problem.ts';
import type { Wakes } from '../store/wakes.ts';
import { limits } from './limits.ts';

/** The parts of a call that a stream needs. */
export interface StreamCall {
  method: string;
  caller: { user_id: string; token_id: string };
  /** Aborts when the client disconnects or the service drains. */
  signal: AbortSignal;
  /** Takes over the response. */
  hijack(): ServerResponse;
}

export interface StreamsOptions {
  /** Read for each new stream, so that limits can change while the service runs. */
  bounds?: () => { per_user: number; total: number };
  stall_ms?: number;
  recheck_ms?: number;
}

export class Streams {
  readonly #wakes: Pick<Wakes, 'onKey'>;
  readonly #bounds: () => { per_user: number; total: number };
  readonly #stall_ms: number;
  readonly #recheck_ms: number;
  readonly #slots = new Slots();

  constructor(wakes: Pick<Wakes, 'onKey'>, options: StreamsOptions = {}) {
    this.#wakes = wakes;
    this.#bounds =
      options.bounds ??
      (() => ({ per_user: sharedLimits.streams_per_user, total: sharedLimits.streams_total }));
    this.#stall_ms = options.stall_ms ?? limits.stream_stall_ms;
    this.#recheck_ms = options.recheck_ms ?? limits.stream_recheck_ms;
  }

  get open(): number {
    return this.#slots.taken;
  }

  /**
   * Serves one stream to its end. `open` returns the frames. While it has none, it may pass new ones to `write` instead,
   * which returns false, and sends nothing, if the client cannot take them now. Errors before the first frame are thrown
   * here, before any header is written. `isAuthorized` is called when the caller's token was changed or the caller has left a
   * team, and every `recheck_ms`. The stream ends when it returns false. Throws a 429 or a 503 if too many streams are open.
   */
  async serve(
    call: StreamCall,
    open: (signal: AbortSignal, write: (frames: Buffer) => boolean) => AsyncIterable<Buffer>,
    isAuthorized: () => Promise<boolean> | boolean,
  ): Promise<void> {
    const release = this.#acquire(call.caller.user_id);
    const stop = new AbortController();
    const { signal } = stop;
    const end = () => stop.abort();
    if (call.signal.aborted) end();
    call.signal.addEventListener('abort', end);
    let socket: Socket | null = null;
    const write = (bytes: Buffer) => {
      if (socket === null || signal.aborted || socket.writableNeedDrain) return false;
      // Not through the response, which corks the socket and schedules a callback for each write.
      socket.write(bytes);
      return true;
    };
    const frames = open(signal, write)[Symbol.asyncIterator]();
    const check = () => void stopIfUnauthorized(isAuthorized, stop);
    const unsubscribe = [
      this.#wakes.onKey('tokens', call.caller.token_id, check),
      this.#wakes.onKey('memberships', call.caller.user_id, check),
    ];
    let recheck: NodeJS.Timeout | undefined;
    try {
      const first = await frames.next();
      const response = call.hijack();
      writeHead(response);
      if (call.method === 'HEAD') {
        response.end();
        return;
      }
      response.on('close', end);
      response.on('error', end);
      // Checks the socket's own queue. Any byte sent counts as progress, and an empty queue is not a stall.
      response.setTimeout(this.#stall_ms, () => {
        if (response.writableLength > 0) response.destroy();
      });
      recheck = setInterval(check, this.#recheck_ms);
      for (let next = first; !next.done && !signal.aborted; next = await frames.next()) {
        if (!response.write(next.value) && !signal.aborted) await untilDrained(response, signal);
        // Null while an earlier response on the same connection is still being sent.
        socket = response.socket;
      }
      response.end();
    } finally {
      clearInterval(recheck);
      for (const each of unsubscribe) each();
      call.signal.removeEventListener('abort', end);
      end();
      release();
      await frames.return?.();
    }
  }

  #acquire(user_id: string): () => void {
    const { per_user, total } = this.#bounds();
    const retry = { retry_after_s: Math.ceil(this.#recheck_ms / 1000) };
    return this.#slots.take(user_id, { per_owner: per_user, total }, (full) =>
      full === 'owner' ? problems.tooManyStreams(retry) : problems.tooManyStreamsInTotal(retry),
    );
  }
}

function writeHead(response: ServerResponse): void {
  response.useChunkedEncodingByDefault = false;
  response.shouldKeepAlive = false;
  response.statusCode = 200;
  response.setHeader('content-type', 'text/event-stream');
  response.setHeader('cache-control', 'no-cache');
  response.setHeader('x-accel-buffering', 'no');
  response.flushHeaders();
}

async function stopIfUnauthorized(
  isAuthorized: () => Promise<boolean> | boolean,
  stop: AbortController,
): Promise<void> {
  try {
    if (!(await isAuthorized())) stop.abort();
  } catch {
    stop.abort();
  }
}

function untilDrained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done);
      signal.removeEventListener('abort', done);
      resolve();
    };
    response.on('drain', done);
    signal.addEventListener('abort', done);
  });
}

/** An `EventSource` sends an empty header before its first event, which means no position. */
export function lastEventId(call: {
  headers: { [name: string]: string | string[] | undefined };
}): string | undefined {
  const header = call.headers['last-event-id'];
  return header === undefined || header === '' ? undefined : String(header);
}
