/** Repeats the same request on a few persistent connections, one request at a time on each. */
import { connect } from 'node:net';
import { readArguments } from './read-arguments.ts';

export interface LoadArgs {
  port: number;
  request: string;
  connections: number;
  seconds: number;
}

export interface LoadReport {
  requests_per_s: number;
  failed: number;
}

const args = await readArguments<LoadArgs>();
const request = Buffer.from(args.request);
const DIGIT_2 = 0x32;
const CLOSING_BRACE = 0x7d;
let answered = 0;
let failed = 0;
for (let i = 0; i < args.connections; i++) {
  const socket = connect({ port: args.port, host: '127.0.0.1', noDelay: true });
  let begins = true;
  socket.on('connect', () => socket.write(request));
  socket.on('data', (chunk) => {
    if (begins && chunk[9] !== DIGIT_2) failed++;
    // A small response arrives in one or two chunks, and its body ends with a brace.
    begins = chunk[chunk.length - 1] === CLOSING_BRACE;
    if (!begins) return;
    answered++;
    socket.write(request);
  });
}
// Warm up for half a second.
await new Promise((resolve) => setTimeout(resolve, 500));
process.send!({ warm: true });
answered = 0;
const begun_ms = performance.now();
await new Promise((resolve) => setTimeout(resolve, args.seconds * 1000));
process.send!({ requests_per_s: (answered * 1000) / (performance.now() - begun_ms), failed });
