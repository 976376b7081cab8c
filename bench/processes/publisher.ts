/** Publishes lines with their time to an nchan channel at a steady rate, over one keep-alive connection. */
import { connect } from 'node:net';
import { nowUs } from './clock.ts';
import { readArguments } from './read-arguments.ts';

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
const total = lines_per_s * seconds;
let written = 0;
const begun_us = nowUs();
publish();

function publish(): void {
  const due = Math.min(total, Math.floor(((nowUs() - begun_us) * lines_per_s) / 1e6));
  for (; written < due; written++) {
    const line = `@${String(nowUs()).padStart(16, '0')}@ INFO a worker did something that is worth a line of log, as they do`;
    const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${line.length}\r\n\r\n`;
    socket.write(head + line);
  }
  if (written < total) setTimeout(publish, 1);
  else process.send!({ written });
}
