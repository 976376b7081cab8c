/** A proxy in front of a PostgreSQL server that loses connections, commits or their answers, and moves to other servers. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import {
  type AddressInfo,
  connect,
  createServer,
  type NetConnectOpts,
  type Server,
  type Socket,
} from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What happens to the next commit: the server gets it, but not the client its answer; or the server does not get it. */
export type LostPart = 'answer' | 'request';

export class PostgresProxy {
  /** The database's URL through the proxy. */
  readonly url: string;
  readonly #server: Server;
  readonly #folder: string;
  readonly #sockets = new Set<Socket>();
  #target: NetConnectOpts;
  #lose: LostPart | null = null;
  #lost = Promise.withResolvers<void>();
  #refuse = false;
  #paused = false;
  #frozen = false;

  private constructor(url: string, target: NetConnectOpts, server: Server, folder: string) {
    this.url = url;
    this.#target = target;
    this.#server = server;
    this.#folder = folder;
  }

  /** Listens on a socket in a folder of its own, or else, with `tcp`, on a port of this machine. */
  static async open(url: string, { tcp = false } = {}): Promise<PostgresProxy> {
    const folder = await mkdtemp(join(tmpdir(), 'svc-proxy-'));
    const address = new URL(url);
    const server = createServer((client) => proxy.#accept(client, connect(proxy.#target)));
    if (tcp) {
      server.listen(0, '127.0.0.1');
      address.searchParams.delete('host');
      address.hostname = '127.0.0.1';
    } else {
      server.listen(join(folder, `.s.PGSQL.${address.port || 5432}`));
      address.searchParams.set('host', folder);
    }
    await once(server, 'listening');
    if (tcp) address.port = String((server.address() as AddressInfo).port);
    const proxy = new PostgresProxy(address.href, targetOf(url), server, folder);
    return proxy;
  }

  /** The host and the port, of a proxy with `tcp`. */
  get host(): string {
    return new URL(this.url).host;
  }

  /** Loses this part of the next commit, with the connection. Then refuses connections, if `refuse`. */
  loseCommit(part: LostPart, refuse = false): void {
    this.#lose = part;
    this.#refuse = refuse;
    this.#lost = Promise.withResolvers();
  }

  /** Waits until the commit of `loseCommit` is lost. */
  async untilLost(): Promise<void> {
    await this.#lost.promise;
  }

  /** Connects new connections with the server at another URL. */
  redirect(url: string): void {
    this.#target = targetOf(url);
  }

  /** Loses all connections, and refuses new ones until `accept`. */
  cut(): void {
    this.#refuse = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Accepts connections again. */
  accept(): void {
    this.#refuse = false;
  }

  /** Passes nothing on until `resume`, not even the end of a connection. */
  pause(): void {
    this.#paused = true;
    for (const socket of this.#sockets) socket.pause();
  }

  resume(): void {
    this.#paused = false;
    for (const socket of this.#sockets) socket.resume();
  }

  /** Loses what comes on any connection until `thaw`, as if the server's machine had vanished. */
  freeze(): void {
    this.#frozen = true;
  }

  /** Forwards what comes on new connections. Those that were open remain silent, until the client closes them. */
  thaw(): void {
    this.#frozen = false;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await rm(this.#folder, { recursive: true, force: true });
  }

  #accept(client: Socket, server: Socket): void {
    let lost = false;
    let silent = false;
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => this.#sockets.delete(socket));
    }
    if (this.#refuse && this.#lose === null) {
      client.destroy();
      server.destroy();
      return;
    }
    client.on('data', (data) => {
      silent ||= this.#frozen;
      if (silent) return;
      if (this.#lose !== null && data.includes('COMMIT\0')) {
        lost = true;
        const part = this.#lose;
        this.#lose = null;
        this.#lost.resolve();
        if (part === 'request') return void client.destroy();
      }
      server.write(data);
    });
    server.on('data', (data) => {
      silent ||= this.#frozen;
      if (lost) client.destroy();
      else if (!silent) client.write(data);
    });
    if (this.#paused) this.pause();
    // The server does not notice that the client of a lost commit is gone.
    client.on('close', () => lost || server.destroy());
    server.on('close', () => client.destroy());
  }
}

function targetOf(url: string): NetConnectOpts {
  const address = new URL(url);
  const port = Number(address.port || 5432);
  const host = address.searchParams.get('host') ?? address.hostname;
  return host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port };
}
