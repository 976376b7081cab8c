/** What Prometheus may know: requests, streams, and the process. A registry of its own, so that several planes fit in a process. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

export class Metrics {
  /** Other parts register what they count here. */
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
  /** By operation and status: looking labels up costs more than counting. */
  readonly #counters = new Map<string, { requests: Counter.Internal; seconds: Histogram.Internal<string> }>();
  #collecting = false;

  /** `seconds` is null for streams, which last as long as somebody listens. */
  request(operation: string, status: number, seconds: number | null): void {
    const key = `${operation} ${status}`;
    let counters = this.#counters.get(key);
    if (counters === undefined) {
      counters = {
        requests: this.#requests.labels({ operation, status }),
        seconds: this.#seconds.labels({ operation }),
      };
      this.#counters.set(key, counters);
    }
    counters.requests.inc();
    if (seconds !== null) counters.seconds.observe(seconds);
  }

  /** Times in seconds that another part tells; answers how to. */
  times(name: string, help: string, buckets: number[]): (seconds: number) => void {
    const histogram = new Histogram({ name, help, buckets, registers: [this.registry] });
    return (seconds) => histogram.observe(seconds);
  }

  /** A number that is asked for when it is looked at. */
  gauge(name: string, help: string, read: () => number): void {
    new Gauge({
      name,
      help,
      registers: [this.registry],
      collect() {
        this.set(read());
      },
    });
  }

  text(): Promise<string> {
    if (!this.#collecting) {
      collectDefaultMetrics({ register: this.registry });
      this.#collecting = true;
    }
    return this.registry.metrics();
  }
}
