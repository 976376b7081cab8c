/**
 * A proxy in front of a service whose answers are the same in each run of a test: it replaces ids, times, measurements, and texts
 * such as folders and ports. What it replaced is restored in the requests.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { StringDecoder } from 'node:string_decoder';
import { type IdPrefix, idFrom } from '../base/ids.ts';

/** The time in all pages. */
export const NOW = Date.UTC(2026, 2, 5, 14, 30);
const STEP_MS = 97_000;
const DAY_MS = 86_400_000;
/** Between two events of an agent. */
const EVENT_MS = 1_300;

const ID = /\b(?:agt|ses|usr|tok|pln|req|team|run|task|conv|trg|rev|eli|prm|psh|pky|pkl)_[a-z2-7]{16}\b/g;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const MEASURED: Readonly<Record<string, unknown>> = {
  free_bytes: 212 * 2 ** 30,
  total_bytes: 512 * 2 ** 30,
  latencies_ms: [3.1, 2.4, 4.2, 2.2, 2.8, 2.5, 3.6, 2.4],
  latency_ms: 2.4,
  ms: 1.2,
  uptime_seconds: 3_725,
  clock_skew_ms: 0,
  pid: 4242,
  base: '5d0c9e27b1f84a36c7e2a9d4f06b813e5a7c4d92',
  version: '1.0.0',
};

export interface SteadyOptions {
  /** The service. */
  target: string;
  /** When each part of the service's history was complete. All times within a part become one time. */
  steps: readonly number[];
  /** Texts of the service, and what pages show instead. */
  texts: Readonly<Record<string, string>>;
}

export class SteadyProxy {
  readonly #options: SteadyOptions;
  readonly #server: Server;
  /** What the service says and what pages show, longest first, so that no text hides one that contains it. */
  readonly #texts: [string, string][];
  readonly #ids = new Map<string, string>();
  readonly #original_ids = new Map<string, string>();

  private constructor(options: SteadyOptions) {
    this.#options = options;
    this.#texts = Object.entries(options.texts).sort(([a], [b]) => b.length - a.length);
    this.#server = createServer((asked, answer) => this.#forward(asked, answer));
  }

  static async open(options: SteadyOptions): Promise<SteadyProxy> {
    const proxy = new SteadyProxy(options);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Replaces the ids in a record. They get the same ids in each run if all records are learned in the same order. */
  learn(record: unknown): void {
    for (const [id] of JSON.stringify(record).matchAll(ID)) this.shown(id);
  }

  /** The id that pages show for one of the service. */
  shown(id: string): string {
    const known = this.#ids.get(id);
    if (known !== undefined) return known;
    const prefix = id.slice(0, id.indexOf('_')) as IdPrefix;
    const shown = idFrom(prefix, String(this.#ids.size));
    this.#ids.set(id, shown);
    this.#original_ids.set(shown, id);
    return shown;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #forward(asked: IncomingMessage, answer: ServerResponse): void {
    const { target } = this.#options;
    const { origin, 'content-length': _length, 'accept-encoding': _encoding, ...headers } = asked.headers;
    const to = request(`${target}${this.#restored(asked.url!, encodeURIComponent)}`, {
      method: asked.method,
      headers: { ...headers, host: new URL(target).host, ...(origin !== undefined && { origin: target }) },
    });
    to.on('response', (answered) => this.#answer(asked.url!, answered, answer));
    to.on('error', () => answer.destroy());
    answer.on('close', () => to.destroy());
    if (asked.method === 'GET') to.end();
    else void readAll(asked).then((body) => to.end(this.#restored(body)));
  }

  #answer(path: string, answered: IncomingMessage, answer: ServerResponse): void {
    const { 'content-length': length, ...headers } = answered.headers;
    answered.on('error', () => answer.destroy());
    if (!path.startsWith('/api/') || path.startsWith('/api/openapi')) {
      answer.writeHead(answered.statusCode!, answered.headers);
      answered.pipe(answer);
      return;
    }
    answer.writeHead(answered.statusCode!, headers);
    answer.flushHeaders();
    const decoder = new StringDecoder('utf8');
    let rest = '';
    answered.on('data', (bytes: Buffer) => {
      const lines = (rest + decoder.write(bytes)).split('\n');
      rest = lines.pop()!;
      for (const line of lines) answer.write(`${this.#line(line)}\n`);
    });
    answered.on('end', () => answer.end(this.#line(rest)));
  }

  /** Replaces in a line of text, of JSON or of a stream of events. */
  #line(line: string): string {
    const replaced = this.#replaced(line);
    const start = replaced.startsWith('data: ') ? 'data: '.length : 0;
    if (!/^[[{]/.test(replaced.slice(start))) return replaced;
    const steady = this.#value.bind(this);
    const value = JSON.parse(replaced.slice(start), function (this: unknown, key: string, value: unknown) {
      return steady(this as Record<string, unknown>, key, value);
    });
    return replaced.slice(0, start) + JSON.stringify(value);
  }

  #replaced(text: string): string {
    let replaced = text.replace(ID, (id) => this.shown(id));
    for (const [original, shown] of this.#texts) replaced = replaced.replaceAll(original, shown);
    return replaced;
  }

  #restored(text: string, encode = (part: string) => part): string {
    let restored = text.replace(ID, (id) => this.#original_ids.get(id) ?? id);
    for (const [original, shown] of this.#texts) {
      restored = restored.replaceAll(encode(shown), encode(original)).replaceAll(shown, original);
    }
    return restored;
  }

  #value(holder: Record<string, unknown>, key: string, value: unknown): unknown {
    if (Object.hasOwn(MEASURED, key) && typeof value === typeof MEASURED[key]) return MEASURED[key];
    if (typeof value === 'string' && TIME.test(value))
      return new Date(this.#time(Date.parse(value))).toISOString();
    if (key !== 'ts' || typeof value !== 'number') return value;
    const { seq } = holder;
    return (this.#time(value * 1000) + (typeof seq === 'number' ? seq * EVENT_MS : 0)) / 1000;
  }

  /** What is to come keeps its distance in days. */
  #time(ms: number): number {
    const { steps } = this.#options;
    const step = steps.findIndex((end) => ms <= end);
    if (step >= 0) return NOW - (steps.length - step) * STEP_MS;
    const days = Math.round((ms - Date.now()) / DAY_MS);
    return NOW + days * DAY_MS;
  }
}

async function readAll(stream: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
