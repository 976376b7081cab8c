/**
 * Clients on raw sockets. Each sends its request and reads the response as fast as it arrives. They count bytes, detect the end,
 * and on every n-th socket read the times in lines (`@`, 16 digits of microseconds, `@`).
 */
import { connect } from 'node:net';
import { nowUs } from './clock.ts';
import { readArguments } from './read-arguments.ts';

export interface ClientArgs {
  port: number;
  /** One request per socket; an empty one is not sent. */
  requests: string[];
  /** A socket is done when its last bytes contain this text, or when it ends. */
  end: string | null;
  /** Read times on every n-th socket; 0: on none. */
  sample_every: number;
}

export interface ClientReport {
  bytes: number;
  /** The number of reads on all sockets. Each small write of the server is one, unless the client falls behind. */
  reads: number;
  /** Microseconds of the monotonic clock. */
  first_us: number;
  last_us: number;
  lines: number;
  p50_ms: number;
  p99_ms: number;
  max_ms: number;
}

const args = await readArguments<ClientArgs>();
/** Frames about the end of the session may follow in the same read. */
const END_BYTES = 4096;
/** Shared by all sockets, because each read is processed before the next one. This avoids streams and garbage. */
const buffer = Buffer.allocUnsafe(256 * 1024);
let bytes = 0;
let reads = 0;
let first_us = 0;
let last_us = 0;
let latencies_us: number[] = [];
let open = 0;
let done = 0;

/** Answers once the requested number of lines has arrived, or after two seconds without a line. */
process.on('message', async ({ take: lines }: { take: number }) => {
  for (let before = -1; latencies_us.length < lines && latencies_us.length !== before; ) {
    before = latencies_us.length;
    const waits_until = performance.now() + 2_000;
    while (latencies_us.length === before && performance.now() < waits_until) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  process.send!(take());
});
const waiting = [...args.requests.entries()];
for (let i = 0; i < 32; i++) dial();

function dial(): void {
  const next = waiting.shift();
  if (!next) return;
  const [index, request] = next;
  const sampled = args.sample_every > 0 && index % args.sample_every === 0;
  let is_open = false;
  let is_done = false;
  let last = '';
  let carry = '';
  const opened = () => {
    if (is_open) return;
    is_open = true;
    dial();
    if (++open === args.requests.length) process.send!({ open });
  };
  const finish = () => {
    if (is_done) return;
    is_done = true;
    socket.destroy();
    if (++done === args.requests.length) process.send!(take());
  };
  const read = (length: number): boolean => {
    opened();
    last_us = nowUs();
    if (first_us === 0) first_us = last_us;
    bytes += length;
    reads++;
    if (sampled) carry = sample(carry + buffer.toString('latin1', 0, length), last_us);
    if (args.end !== null) {
      last = (last + buffer.toString('latin1', Math.max(0, length - END_BYTES), length)).slice(-END_BYTES);
      if (last.includes(args.end)) finish();
    }
    return true;
  };
  const socket = connect({
    port: args.port,
    host: '127.0.0.1',
    noDelay: true,
    onread: { buffer, callback: read },
  });
  socket.on('connect', () => (request === '' ? opened() : socket.write(request)));
  socket.on('error', finish);
  socket.on('close', finish);
}

/** Records the latencies of the times in a text. Returns its end, which may be the beginning of an incomplete time. */
function sample(text: string, now_us: number): string {
  const times = /@(\d{16})@/g;
  let from = 0;
  for (let match = times.exec(text); match; match = times.exec(text)) {
    latencies_us.push(now_us - Number(match[1]));
    from = times.lastIndex;
  }
  return text.slice(Math.max(from, text.length - 17));
}

function take(): ClientReport {
  const sorted = latencies_us.sort((a, b) => a - b);
  const at = (share: number) => (sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN) / 1000;
  const taken = {
    bytes,
    reads,
    first_us,
    last_us,
    lines: sorted.length,
    p50_ms: at(0.5),
    p99_ms: at(0.99),
    max_ms: at(1),
  };
  bytes = reads = first_us = last_us = 0;
  latencies_us = [];
  return taken;
}
