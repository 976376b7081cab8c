/**
 * The event streams of a plane without a network, for clients that accept a `fetch` function. Logs of numbered events can grow
 * and lose their oldest events, connections can break in the middle of a frame, and no stream is faster than its reader.
 */
export class FakeStreams {
  /** Every request for a stream, as `path?query#last-event-id`. */
  readonly requests: string[] = [];
  /** Requests get no answer. */
  is_down = false;
  /** A proxy answers requests with its own 404. */
  is_misrouted = false;
  /** The accepted tokens; null: all. */
  tokens: Set<string> | null = null;
  /** The number of bytes that readers have read, by path. */
  readonly bytes_read = new Map<string, number>();
  readonly #logs = new Map<string, { first: number; head: number; wake: () => void; grown: Promise<void> }>();
  readonly #open = new Set<{ path: string; end: (how: 'cut' | 'end') => void }>();

  constructor(agent_ids: readonly string[]) {
    for (const path of ['/api/events', ...agent_ids.map(pathOf)]) this.#makeLog(path);
  }

  /** The paths of all open connections. */
  get open(): string[] {
    return [...this.#open].map(({ path }) => path).sort();
  }

  head(agent_id: string): number {
    return this.#logs.get(pathOf(agent_id))!.head;
  }

  append(agent_id: string, count: number): void {
    this.#grow(pathOf(agent_id), count);
  }

  change(count = 1): void {
    this.#grow('/api/events', count);
  }

  /** Deletes the first `count` events. */
  forget(agent_id: string, count: number): void {
    this.#logs.get(pathOf(agent_id))!.first = count + 1;
  }

  /** Restores a backup: the log becomes shorter, and all connections break. */
  restore(agent_id: string, head: number): void {
    this.#logs.get(pathOf(agent_id))!.head = head;
    this.cut();
  }

  /** Breaks every connection, in the middle of a frame if there is something to send. */
  cut(): void {
    for (const { end } of [...this.#open]) end('cut');
  }

  readonly fetch: typeof fetch = (input, init) => {
    if (this.is_down) return Promise.reject(new TypeError('down'));
    const url = new URL(String(input));
    const headers = new Headers(init?.headers);
    const last = headers.get('last-event-id');
    this.requests.push(
      `${url.pathname.slice('/api/'.length)}${url.search}${last === null ? '' : `#${last}`}`,
    );
    const token = headers.get('authorization')?.replace('Bearer ', '') ?? '';
    if (this.tokens?.has(token) === false) return refusal(401, 'invalid token', 'unauthenticated');
    const log = this.#logs.get(url.pathname);
    if (!log) return refusal(404, 'agent not found', 'agent_not_found');
    if (this.is_misrouted) return refusal(404, 'no such page');
    const after = last ?? url.searchParams.get('after');
    const tail = url.searchParams.get('tail');
    const begin = url.pathname === '/api/events' ? log.head : 0;
    const position = tail === null ? begin : Math.max(0, log.head - Number(tail));
    return Promise.resolve(
      new Response(this.#body(url.pathname, after === null ? position : Number(after), init?.signal)),
    );
  };

  #makeLog(path: string): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#logs.set(path, { first: 1, head: 0, wake: resolve, grown: promise });
  }

  #grow(path: string, count: number): void {
    const log = this.#logs.get(path)!;
    const { promise, resolve } = Promise.withResolvers<void>();
    const { wake } = log;
    Object.assign(log, { head: log.head + count, wake: resolve, grown: promise });
    wake();
  }

  #body(path: string, after: number, signal: AbortSignal | null | undefined): ReadableStream<Uint8Array> {
    const text = new TextEncoder();
    const log = this.#logs.get(path)!;
    let cursor = after;
    let controller!: ReadableStreamDefaultController<Uint8Array>;
    const connection = {
      path,
      end: (how: 'cut' | 'end') => {
        if (!this.#open.delete(connection)) return;
        if (how === 'end') return controller.close();
        if (cursor < log.head) controller.enqueue(text.encode(frameOf(path, cursor + 1).slice(0, -5)));
        controller.error(new TypeError('cut'));
      },
    };
    this.#open.add(connection);
    const send = (chunk: string) => {
      this.bytes_read.set(path, (this.bytes_read.get(path) ?? 0) + chunk.length);
      controller.enqueue(text.encode(chunk));
    };
    return new ReadableStream({
      start: (opened) => {
        controller = opened;
        signal?.addEventListener('abort', () => {
          this.#open.delete(connection);
          controller.error(signal.reason);
        });
        send('retry: 1000\n\n');
      },
      pull: async () => {
        while (cursor === log.head) await log.grown;
        if (!this.#open.has(connection)) return;
        if (cursor > log.head) {
          cursor = log.head;
          send(errorOf(cursor, 'reset'));
        } else if (cursor + 1 < log.first) {
          cursor = log.first - 1;
          send(errorOf(cursor, 'events_truncated'));
        } else {
          const to = Math.min(log.head, cursor + 20);
          let chunk = '';
          while (cursor < to) chunk += frameOf(path, ++cursor);
          send(chunk);
        }
      },
      cancel: () => {
        this.#open.delete(connection);
      },
    });
  }
}

function pathOf(agent_id: string): string {
  return `/api/agents/${agent_id}/events`;
}

function frameOf(path: string, seq: number): string {
  const type = path === '/api/events' ? 'agent' : 'output';
  return `id: ${seq}\nevent: ${type}\ndata: ${JSON.stringify({ type, seq, data: `line ${seq}` })}\n\n`;
}

function errorOf(position: number, code: string): string {
  return `id: ${position}\nevent: error\ndata: ${JSON.stringify({ type: 'error', code, seq: position })}\n\n`;
}

function refusal(status: number, error: string, code?: string): Promise<Response> {
  const headers = new Headers(code === undefined ? {} : { 'x-error-code': code });
  return Promise.resolve(new Response(JSON.stringify({ error }), { status, headers }));
}
