/**
 * An unreliable network for tests: a TCP proxy on a free port of loopback that delays, slows, holds back or cuts connections.
 * `up` is the direction from the client to the server, `down` the opposite one. Bytes that it holds back arrive later and in
 * order, as with TCP. It never changes or drops a byte of a connection that it does not cut.
 */
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { sleep, Wake } from '../base/async.ts';

export type Direction = 'up' | 'down';

export interface NetworkConditions {
  /** Called once per connection: the number of bytes in both directions after which it is cut. Null: never. */
  cut_after_bytes: (() => number) | null;
  /** Called for every chunk. */
  delay_ms: (() => number) | null;
  bytes_per_second: number | null;
}

/** The most bytes that one direction of a connection buffers before it stops reading. */
const WINDOW_BYTES = 256 * 1024;
const perfect: NetworkConditions = { cut_after_bytes: null, delay_ms: null, bytes_per_second: null };

export class FlakyProxy {
  /** A change of `cut_after_bytes` affects new connections; the other fields also affect existing ones. */
  conditions: NetworkConditions = perfect;
  /** The number of connections so far. */
  connections = 0;
  /** The number of connections that reached `cut_after_bytes`. */
  cuts = 0;
  /** The port to which new connections are forwarded. */
  target_port: number;
  readonly #server: net.Server;
  readonly #cut_functions = new Set<() => void>();
  readonly #held = new Set<Direction>();
  readonly #wakes = new Set<Wake>();

  private constructor(target_port: number, server: net.Server) {
    this.target_port = target_port;
    this.#server = server;
  }

  static async open(target_port: number): Promise<FlakyProxy> {
    const server = net.createServer();
    const proxy = new FlakyProxy(target_port, server);
    server.on('connection', (socket) => proxy.#connect(socket));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Holds back everything in these directions until `release`, even the end of a connection. */
  hold(...directions: Direction[]): void {
    for (const direction of directions) this.#held.add(direction);
  }

  /** Forwards everything again, starting with what was held back. */
  release(): void {
    this.#held.clear();
    for (const wake of this.#wakes) wake.notify();
  }

  reset(): void {
    this.conditions = perfect;
    this.release();
  }

  /** Ends every connection at once. */
  cut(): void {
    for (const cut of [...this.#cut_functions]) cut();
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.release();
    this.cut();
    await closed;
  }

  #connect(near: net.Socket): void {
    this.connections++;
    const far = net.connect(this.target_port, '127.0.0.1');
    const sockets = [near, far];
    let remaining = this.conditions.cut_after_bytes?.() ?? Number.POSITIVE_INFINITY;
    const stop = new AbortController();
    const cut = () => {
      this.#cut_functions.delete(cut);
      stop.abort();
      for (const socket of sockets) socket.destroy();
    };
    this.#cut_functions.add(cut);
    for (const socket of sockets) socket.setNoDelay(true).on('error', () => {});

    const forward = async (from: net.Socket, to: net.Socket, direction: Direction) => {
      let delivered = Promise.resolve();
      let queued_bytes = 0;
      const deliver = async (chunk: Buffer, due: number) => {
        await sleep(Math.max(due - performance.now(), 0), stop.signal);
        await this.#untilReleased(direction, stop.signal);
        queued_bytes -= chunk.length;
        const bytes = chunk.subarray(0, remaining);
        remaining -= bytes.length;
        if (!to.write(bytes)) await Promise.race([once(to, 'drain'), once(to, 'close')]);
        if (remaining <= 0 && this.#cut_functions.has(cut)) {
          this.cuts++;
          cut();
        }
      };
      try {
        for await (const chunk of from) {
          await this.#throttle(chunk.length, stop.signal);
          const due = performance.now() + (this.conditions.delay_ms?.() ?? 0);
          queued_bytes += chunk.length;
          delivered = delivered.then(() => deliver(chunk, due));
          // A write may fail while no chunk arrives, so that nothing awaits this promise.
          delivered.catch(cut);
          if (queued_bytes > WINDOW_BYTES) await delivered;
        }
        await delivered;
        await this.#untilReleased(direction, stop.signal);
        to.end();
      } catch {
        await delivered.catch(() => {});
        await this.#untilReleased(direction, stop.signal);
        cut();
      }
    };
    void Promise.all([forward(near, far, 'up'), forward(far, near, 'down')]).then(cut);
  }

  async #throttle(bytes: number, signal: AbortSignal): Promise<void> {
    const { bytes_per_second } = this.conditions;
    if (bytes_per_second !== null) await sleep((bytes / bytes_per_second) * 1000, signal);
  }

  async #untilReleased(direction: Direction, signal: AbortSignal): Promise<void> {
    const wake = new Wake();
    this.#wakes.add(wake);
    while (this.#held.has(direction) && !signal.aborted) await wake.wait(undefined, signal);
    this.#wakes.delete(wake);
  }
}
