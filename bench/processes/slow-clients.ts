/**
 * Holds many connections that send a byte from time to time and never complete a request: half of them in the headers, half in
 * the body. A connection that the service closes is opened again.
 */
import { connect, type Socket } from 'node:net';
import { readArguments } from './read-arguments.ts';

export interface SlowClientsArgs {
  port: number;
  token: string;
  sockets: number;
}

export interface SlowClientsReport {
  open: number;
  ended: number;
}

const DRIP_MS = 5_000;
const RAMP = 100;
const args = await readArguments<SlowClientsArgs>();
const open = new Set<Socket>();
let ended = 0;

function begin(i: number): void {
  const socket = connect({ port: args.port, host: '127.0.0.1' });
  let drip: NodeJS.Timeout;
  socket.on('error', () => {});
  socket.on('connect', () => {
    open.add(socket);
    const head = `POST /api/agents HTTP/1.1\r\nHost: 127.0.0.1:${args.port}\r\nAuthorization: Bearer ${args.token}\r\n`;
    const body = 'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{';
    socket.write(i % 2 === 0 ? `${head}X-A: ` : `${head}${body}`);
    drip = setInterval(() => socket.write(' '), DRIP_MS);
  });
  socket.resume();
  socket.on('close', () => {
    clearInterval(drip);
    if (open.delete(socket)) ended++;
    setTimeout(() => begin(i), 100);
  });
}

for (let i = 0; i < args.sockets; i++) {
  begin(i);
  if (i % RAMP === 0) await new Promise((resolve) => setTimeout(resolve, 10));
}
process.on('message', () => process.send!({ open: open.size, ended } satisfies SlowClientsReport));
process.send!({ open: open.size, ended } satisfies SlowClientsReport);
