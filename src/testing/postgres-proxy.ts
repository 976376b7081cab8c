/** A proxy in front of a PostgreSQL server that loses connections, commits or their answers, and moves to other servers. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type NetConnectOpts, type Server, type Socket } from 'node:net';
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
  #refuse = false;
  #paused = false;

  private constructor(url: string, target: NetConnectOpts, server: Server, folder: string) {
    this.url = url;
    this.#target = target;
    this.#server = server;
    this.#folder = folder;
  }

  static async open(url: string): Promise<PostgresProxy> {
    const folder = await mkdtemp(join(tmpdir(), 'svc-proxy-'));
    const address = new URL(url);
    address.searchParams.set('host', folder);
    const server = createServer((client) => proxy.#accept(client, connect(proxy.#target)));
    const proxy = new PostgresProxy(address.href, targetOf(url), server, folder);
    server.listen(join(folder, `.s.PGSQL.${address.port || 5432}`));
    await once(server, 'listening');
    return proxy;
  }

  /** Loses this part of the next commit, with the connection. Then refuses connections, if `refuse`. */
  loseCommit(part: LostPart, refuse = false): void {
    this.#lose = part;
    this.#refuse = refuse;
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

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await rm(this.#folder, { recursive: true, force: true });
  }

  #accept(client: Socket, server: Socket): void {
    let lost = false;
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
      if (this.#lose !== null && data.includes('COMMIT\0')) {
        lost = true;
        const part = this.#lose;
        this.#lose = null;
        if (part === 'request') return void client.destroy();
      }
      server.write(data);
    });
    server.on('data', (data) => {
      if (lost) client.destroy();
      else client.write(data);
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
