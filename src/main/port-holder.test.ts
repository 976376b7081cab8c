import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { listeners, portHolder } from './port-holder.ts';

test('counts only sockets that listen on exactly this port', () => {
  const table = [
    '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
    '   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0 100 0',
    '   1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 12 1 0 100 0',
    '   2: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 13 1 0 100 0',
    '   3: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 14 1',
  ].join('\n');
  expect(listeners(table, 8080)).toEqual(['11', '14']);
});

test.runIf(process.platform === 'linux')('names the process that listens', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  try {
    expect(await portHolder(port)).toMatchObject({ pid: process.pid });
  } finally {
    server.close();
    await once(server, 'close');
  }
  expect(await portHolder(port)).toBeNull();
});
