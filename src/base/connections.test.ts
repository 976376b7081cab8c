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

test('closes the least recently used stranger for a new connection', async () => {
  const open = await serve({ strangers_max: 3, owned_max: 3 });
  const [first, second, third] = [await open(), await open(), await open()];
  first.connection.begin();
  first.connection.end();
  const fourth = await open();
  expect(states([first, second, third, fourth])).toEqual([true, false, true, true]);
});

test('closes strangers of the network with the most, so that a flood does not reach others', () => {
  const server = new EventEmitter();
  const connections = new Connections(server as Server, { strangers_max: 4, owned_max: 4 });
  let port = 0;
  const connectFrom = (remoteAddress: string) => {
    const ends = { remoteAddress, remotePort: ++port, localAddress: '192.0.2.1' };
    const socket = Object.assign(new EventEmitter(), { ...ends, destroyed: false, destroy: () => {} });
    socket.destroy = () => {
      socket.destroyed = true;
      socket.emit('close');
    };
    server.emit('connection', socket);
    return { connection: connections.find(ends)!, is_open: () => !socket.destroyed };
  };
  const slow = [connectFrom('198.51.100.1'), connectFrom('2001:db8::1')];
  const flood = Array.from({ length: 20 }, (_, n) => connectFrom(`127.0.0.${n + 1}`));
  expect(states(slow)).toEqual([true, true]);
  expect(states(flood)).toEqual([...Array(18).fill(false), true, true]);
});

test('spares requests in progress, but keeps a quarter of the places for new connections', async () => {
  const open = await serve({ strangers_max: 4, owned_max: 4 });
  const busy = [await open(), await open(), await open()];
  for (const { connection } of busy) connection.begin();
  const idle = [await open(), await open()];
  expect(states([...busy, ...idle])).toEqual([true, true, true, false, true]);
  idle[1]!.connection.begin();
  const newcomer = await open();
  expect(states([...busy, idle[1]!, newcomer])).toEqual([false, true, true, true, true]);
});

test('owned connections do not take the places of strangers, nor strangers theirs', async () => {
  const open = await serve({ strangers_max: 2, owned_max: 2 });
  const owned = [await open(), await open()];
  for (const [i, { connection }] of owned.entries()) connection.own(`owner ${i}`);
  const strangers = [await open(), await open(), await open()];
  expect(states([...owned, ...strangers])).toEqual([true, true, false, true, true]);
});

test('takes the place for another owned connection from the owner of the most', async () => {
  const open = await serve({ strangers_max: 10, owned_max: 4 });
  const [other, ...greedy] = [await open(), await open(), await open(), await open()];
  other!.connection.own('other');
  for (const { connection } of greedy) connection.own('greedy');
  greedy[0]!.connection.begin();
  const newcomer = await open();
  newcomer.connection.own('newcomer');
  expect(states([other!, ...greedy, newcomer])).toEqual([true, true, false, true, true]);
});

test('bounds the connections of each owner, and spares the one that was just used', async () => {
  const open = await serve({ strangers_max: 10, owned_max: 10, per_owner_max: 2 });
  const opened = [await open(), await open(), await open()];
  for (const { connection } of opened) connection.own('a');
  const other = await open();
  other.connection.own('b');
  expect(states([...opened, other])).toEqual([false, true, true, true]);
});

test('released and closed connections do not count', async () => {
  const open = await serve({ strangers_max: 1, owned_max: 1 });
  const released = await open();
  released.connection.release();
  const closed = await open();
  closed.connection.destroy();
  await sleep(20);
  const stranger = await open();
  expect(states([released, stranger])).toEqual([true, true]);
  // Late calls about a closed connection do nothing.
  closed.connection.begin();
  closed.connection.own('late');
  closed.connection.end();
  expect(states([released, stranger, await open()])).toEqual([true, false, true]);
});

test('closes strangers after a time, but not during a request', async () => {
  const open = await serve({ strangers_max: 10, owned_max: 10, stranger_ms: 100 });
  const [idle, busy, owned] = [await open(), await open(), await open()];
  busy.connection.begin();
  owned.connection.own('a');
  await expect.poll(() => states([idle, busy, owned])).toEqual([false, true, true]);
  busy.connection.end();
  await expect.poll(() => states([busy, owned])).toEqual([false, true]);
});
