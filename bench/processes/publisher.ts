/** Publishes lines with their time to an nchan channel at a steady rate, over one keep-alive connection. */
import { connect } from 'node:net';
import { nowUs } from './clock.ts';
import { readArguments } from './read-arguments.ts';
import { repeatSteadily } from './steady.ts';

export interface PublisherArgs {
  port: number;
  path: string;
  lines_per_s: number;
  seconds: number;
}

const { port, path, lines_per_s, seconds } = await readArguments<PublisherArgs>();
const socket = connect({ port, host: '127.0.0.1', noDelay: true });
// The answers are not needed.
socket.resume();
const written = await repeatSteadily(lines_per_s, seconds, () => {
  const line = `@${String(nowUs()).padStart(16, '0')}@ INFO a worker did something that is worth a line of log, as they do`;
  const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${line.length}\r\n\r\n`;
  socket.write(head + line);
});
process.send!({ written });
