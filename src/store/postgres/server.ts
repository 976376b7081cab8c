/** A database's server as all connections of a store see it: which of its hosts is in use, and whether it answers. */
import type { Logger } from '../../base/log.ts';
import { type HostPort, parseDatabaseUrl } from '../../core/database-url.ts';
import { isServerUnreachable, reasonOf } from './errors.ts';
import { limits } from './limits.ts';

export class Server {
  readonly #hosts: readonly HostPort[];
  readonly #log: Logger;
  readonly #listeners: (() => void)[] = [];
  #current = 0;
  #down_since_ms: number | null = null;
  #full_logged_ms = Number.NEGATIVE_INFINITY;

  /** Throws if the URL is not valid. */
  constructor({ url, log }: { url: string; log: Logger }) {
    const address = parseDatabaseUrl(url);
    if (typeof address === 'string') throw new Error(`the URL of the database ${address}`);
    this.#hosts = address.hosts;
    this.#log = log;
  }

  /** The host for the next connection: the one that was found last, unless it has failed since. */
  get host(): HostPort {
    return this.#hosts[this.#current]!;
  }

  /** All hosts in the order in which to try them, from `host` on. */
  get hosts(): readonly HostPort[] {
    return [...this.#hosts.slice(this.#current), ...this.#hosts.slice(0, this.#current)];
  }

  /** Whether the server answered last, as far as it was asked. */
  get up(): boolean {
    return this.#down_since_ms === null;
  }

  /** `host` accepts writes. */
  found(host: HostPort): void {
    this.#current = this.#hosts.indexOf(host);
  }

  /** Reports an answer. Logs the end of an outage. */
  answered(): void {
    if (this.#down_since_ms === null) return;
    const outage_ms = Math.round(performance.now() - this.#down_since_ms);
    this.#down_since_ms = null;
    this.#log.info({ outage_ms }, 'PostgreSQL answers again');
  }

  /**
   * Reports an error of an attempt to connect, or of a check. Returns whether the server was not reachable, or does not accept
   * writes. Then it logs the beginning of the outage, and other connections try the host after `host`.
   */
  failed(error: unknown, host?: HostPort): boolean {
    if (!isServerUnreachable(error)) return false;
    if (host === this.host) this.#current = (this.#current + 1) % this.#hosts.length;
    if (this.#down_since_ms === null) {
      this.#down_since_ms = performance.now();
      this.#log.warn({ reason: reasonOf(error) }, 'PostgreSQL does not answer');
    } else if (performance.now() - this.#down_since_ms >= limits.unreachable_ms_max) {
      for (const listener of this.#listeners) listener();
    }
    return true;
  }

  /** Reports that the server has no disk space left. Logs one line per `limits.full_disk_log_ms`. */
  isFull(error: unknown): void {
    const now_ms = performance.now();
    if (now_ms - this.#full_logged_ms < limits.full_disk_log_ms) return;
    this.#full_logged_ms = now_ms;
    this.#log.error(
      { reason: reasonOf(error) },
      'PostgreSQL has no disk space left: make room on its machine',
    );
  }

  /** Calls `listener`, perhaps repeatedly, when the server has not answered for `limits.unreachable_ms_max`. */
  onUnreachable(listener: () => void): void {
    this.#listeners.push(listener);
  }
}
