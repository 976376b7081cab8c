/** A minimal fan-out: sends the same bytes from memory to every socket, as fast as each accepts them. */
import { readFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { readArguments } from './read-arguments.ts';

export interface RawFanOutArgs {
  file: string;
  chunk_bytes: number;
}

const args = await readArguments<RawFanOutArgs>();
const bytes = readFileSync(args.file);
const sockets: Socket[] = [];
let started = false;
const server = createServer({ noDelay: true }, (socket) => {
  socket.on('error', () => {});
  // A client may count a connection as open before it is accepted here.
  if (started) send(socket, 0);
  else sockets.push(socket);
});
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () =>
  process.send!({ port: (server.address() as { port: number }).port }),
);
process.on('message', () => {
  started = true;
  for (const socket of sockets) send(socket, 0);
});

function send(socket: Socket, from: number): void {
  for (let at = from; at < bytes.length; at += args.chunk_bytes) {
    if (!socket.write(bytes.subarray(at, at + args.chunk_bytes))) {
      socket.once('drain', () => send(socket, at + args.chunk_bytes));
      return;
    }
  }
  socket.end();
}
