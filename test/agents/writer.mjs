// An agent that writes numbered lines to stdout and stderr until a file `stop` appears in its workdir. It writes each piece to
// `<name>.stdout` or `<name>.stderr` first, so that these files contain all its output.
import { appendFileSync, existsSync, writeSync } from 'node:fs';

const [name, pause_ms = '5', size = '60'] = process.argv.slice(2);
const streams = { 1: `${name}.stdout`, 2: `${name}.stderr` };
const wait = new Int32Array(new SharedArrayBuffer(4));

function write(fd, bytes) {
  appendFileSync(streams[fd], bytes);
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(fd, bytes, at);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
      Atomics.wait(wait, 0, 0, 1);
    }
  }
}

// At least five lines, so that even an agent that is stopped at once has written to both streams.
for (let n = 1; n <= 5 || !existsSync('stop'); n++) {
  const fd = n % 5 === 0 ? 2 : 1;
  const text = `${name} ${n} ${'€x'.repeat((n * 7919) % Number(size))}`;
  const bytes = Buffer.from(n % 11 === 0 ? text : `${text}\n`);
  // Some lines are written in two pieces, cut anywhere, and some bytes are not valid UTF-8.
  const cut = n % 3 === 0 ? (n * 31) % bytes.length : bytes.length;
  write(fd, bytes.subarray(0, cut));
  write(fd, bytes.subarray(cut));
  if (n % 17 === 0) write(fd, Buffer.from([0xff, 0x00, 0xc3, 0x0a]));
  if (Number(pause_ms) > 0 && n % 4 === 0) Atomics.wait(wait, 0, 0, Number(pause_ms));
}
