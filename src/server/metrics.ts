/**
 * Prometheus metrics of requests, streams and the process. Each plane has its own registry, so that several planes
 * can run in one process.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { sleep } from '../base/async.ts';
import { type Logger, silentLog } from '../base/log.ts';
import { limits } from './limits.ts';

export interface LabeledValue<L extends string> {
  labels: Record<L, string>;
  value: number;
}

export class Metrics {
  /** The registry in which other modules register their metrics. */
  readonly registry = new Registry();
  readonly #requests = new Counter({
    name: 'svc_http_requests_total',
    help: 'Answered requests.',
    labelNames: ['operation', 'status'],
    registers: [this.registry],
  });
  readonly #seconds = new Histogram({
    name: 'svc_http_request_seconds',
    help: 'Time from request to the end of the answer; streams not included.',
    labelNames: ['operation'],
    buckets: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10],
    registers: [this.registry],
  });
  readonly #log: Logger;
  #collecting = false;

  /** `log` gets the reasons why values could not be read. */
  constructor(log: Logger = silentLog) {
    this.#log = log;
  }

  /** `seconds` is null for streams, which last as long as the client reads them. */
  request(operation: string, status: number, seconds: number | null): void {
    this.#requests.inc({ operation, status });
    if (seconds !== null) this.#seconds.observe({ operation }, seconds);
  }

  /** Registers a histogram with these buckets, in seconds, and returns the function that records a value. */
  times(name: string, help: string, buckets: number[]): (seconds: number) => void {
    const histogram = new Histogram({ name, help, buckets, registers: [this.registry] });
    return (seconds) => histogram.observe(seconds);
  }

  /** Registers a gauge whose value is computed when the metrics are read. It has none if `read` returns null or fails. */
  gauge(name: string, help: string, read: () => number | null | Promise<number | null>): void {
    const readOrNull = () => this.#readOr(null, name, read);
    new Gauge({
      name,
      help,
      registers: [this.registry],
      async collect() {
        const value = await readOrNull();
        if (value === null) this.remove();
        else this.set(value);
      },
    });
  }

  /**
   * Registers a gauge with labels. `read` returns all its values when the metrics are read. It has none if `read` fails, so that
   * the others can still be read.
   */
  gauges<L extends string>(
    name: string,
    help: string,
    labels: readonly L[],
    read: () => LabeledValue<L>[] | Promise<LabeledValue<L>[]>,
  ): void {
    const readOrNone = () => this.#readOr([], name, read);
    new Gauge<L>({
      name,
      help,
      labelNames: labels,
      registers: [this.registry],
      async collect() {
        const values = await readOrNone();
        this.reset();
        for (const each of values) this.set(each.labels, each.value);
      },
    });
  }

  /** Registers a counter whose value is read when the metrics are read. It must never decrease. */
  counter(name: string, help: string, read: () => number): void {
    new Counter({
      name,
      help,
      registers: [this.registry],
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  }

  /** All metrics in the Prometheus text format. Starts collecting process metrics at the first call. */
  text(): Promise<string> {
    if (!this.#collecting) {
      collectDefaultMetrics({ register: this.registry });
      this.#collecting = true;
    }
    return this.registry.metrics();
  }

  async #readOr<T>(none: T, metric: string, read: () => T | Promise<T>): Promise<T> {
    const finished = new AbortController();
    const late = async () => {
      await sleep(limits.metric_read_ms_max, finished.signal);
      throw new Error(`not read within ${limits.metric_read_ms_max} ms`);
    };
    try {
      return await Promise.race([read(), late()]);
    } catch (err) {
      this.#log.warn({ err, metric }, 'cannot read a metric');
      return none;
    } finally {
      finished.abort();
    }
  }
}
