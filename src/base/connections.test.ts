import { EventEmitter, once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { sleep } from './async.ts';
import { type Connection, type ConnectionBounds, Connections } from './connections.ts';

interface Opened {
  connection: Connection;
  is_open(): boolean;
}

/** A server with these bounds; the function that it returns connects to it. */
async function serve(bounds: ConnectionBounds): Promise<() => Promise<Opened>> {
  const server = createServer();
  const connections = new Connections(server, bounds);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as { port: number };
  onTestFinished(() => {
    connections.destroyAll();
    server.close();
  });
  return async () => {
    const accepted = once(server, 'connection') as Promise<[Socket]>;
    const client = connect(port, '127.0.0.1');
    client.on('error', () => {});
    onTestFinished(() => void client.destroy());
    const [socket] = await accepted;
    return { connection: connections.find(socket)!, is_open: () => !socket.destroyed };
  };
}
const states = (opened: Opened[]) => opened.map(({ is_open }) => is_open());

test('closes the least recently used anonymous connection for a new one', async () => {
  const open = await serve({ anonymous_max: 3, owned_max: 3 });
  const [first, second, third] = [await open(), await open(), await open()];
  first.connection.begin();
  first.connection.end();
  const fourth = await open();
  expect(states([first, second, third, fourth])).toEqual([true, false, true, true]);
});

/** Connections from any addresses, without sockets. */
function serveAddresses(bounds: ConnectionBounds): (remoteAddress: string) => Opened {
  const server = new EventEmitter();
  const connections = new Connections(server as Server, bounds);
  let port = 0;
  return (remoteAddress) => {
    const ends = { remoteAddress, remotePort: ++port, localAddress: '192.0.2.1' };
    const socket = Object.assign(new EventEmitter(), { ...ends, destroyed: false, destroy: () => {} });
    socket.destroy = () => {
      socket.destroyed = true;
      socket.emit('close');
    };
    server.emit('connection', socket);
    return { connection: connections.find(ends)!, is_open: () => !socket.destroyed };
  };
}

test('a flood from one network closes no connections from others', () => {
  const openFrom = serveAddresses({ anonymous_max: 4, owned_max: 4 });
  const slow = [openFrom('198.51.100.1'), openFrom('2001:db8::1')];
  const flood = Array.from({ length: 20 }, (_, n) => openFrom(`127.0.0.${n + 1}`));
  expect(states(slow)).toEqual([true, true]);
  expect(states(flood)).toEqual([...Array(18).fill(false), true, true]);
});

test('idle connections from many networks close no request in progress', () => {
  const openFrom = serveAddresses({ anonymous_max: 8, owned_max: 4 });
  const page = Array.from({ length: 3 }, () => openFrom('198.51.100.1'));
  for (const { connection } of page) connection.begin();
  for (let n = 1; n <= 20; n++) openFrom(`2001:db8:0:${n}::1`);
  expect(states(page)).toEqual([true, true, true]);
});

test('spares requests in progress, but keeps a quarter of the places for new connections', async () => {
  const open = await serve({ anonymous_max: 4, owned_max: 4 });
  const busy = [await open(), await open(), await open()];
  for (const { connection } of busy) connection.begin();
  const idle = [await open(), await open()];
  expect(states([...busy, ...idle])).toEqual([true, true, true, false, true]);
  idle[1]!.connection.begin();
  const newcomer = await open();
  expect(states([...busy, idle[1]!, newcomer])).toEqual([false, true, true, true, true]);
});

test('owned connections do not take the places of anonymous ones, nor these theirs', async () => {
  const open = await serve({ anonymous_max: 2, owned_max: 2 });
  const owned = [await open(), await open()];
  for (const [i, { connection }] of owned.entries()) connection.own(`owner ${i}`);
  const anonymous = [await open(), await open(), await open()];
  expect(states([...owned, ...anonymous])).toEqual([true, true, false, true, true]);
});

test('takes the place for another owned connection from the owner of the most', async () => {
  const open = await serve({ anonymous_max: 10, owned_max: 4 });
  const [other, ...greedy] = [await open(), await open(), await open(), await open()];
  other!.connection.own('other');
  for (const { connection } of greedy) connection.own('greedy');
  greedy[0]!.connection.begin();
  const newcomer = await open();
  newcomer.connection.own('newcomer');
  expect(states([other!, ...greedy, newcomer])).toEqual([true, true, false, true, true]);
});

test('bounds the connections of each owner, and spares the one that was just used', async () => {
  const open = await serve({ anonymous_max: 10, owned_max: 10, per_owner_max: 2 });
  const opened = [await open(), await open(), await open()];
  for (const { connection } of opened) connection.own('a');
  const other = await open();
  other.connection.own('b');
  expect(states([...opened, other])).toEqual([false, true, true, true]);
});

test('released and closed connections do not count', async () => {
  const open = await serve({ anonymous_max: 1, owned_max: 1 });
  const released = await open();
  released.connection.release();
  const closed = await open();
  closed.connection.destroy();
  await sleep(20);
  const anonymous = await open();
  expect(states([released, anonymous])).toEqual([true, true]);
  // Late calls about a closed connection do nothing.
  closed.connection.begin();
  closed.connection.own('late');
  closed.connection.end();
  expect(states([released, anonymous, await open()])).toEqual([true, false, true]);
});

test('closes anonymous connections after a time, but not during a request', async () => {
  const open = await serve({ anonymous_max: 10, owned_max: 10, anonymous_ms: 100 });
  const [idle, busy, owned] = [await open(), await open(), await open()];
  busy.connection.begin();
  owned.connection.own('a');
  await expect.poll(() => states([idle, busy, owned])).toEqual([false, true, true]);
  busy.connection.end();
  await expect.poll(() => states([busy, owned])).toEqual([false, true]);
});
