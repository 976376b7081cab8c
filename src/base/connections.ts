/**
 * Bounds the connections of a listener, so that a program that only opens connections can use up neither the descriptors of this
 * process nor the places of others. A connection is a stranger until its owner is known, for example after a request with a valid
 * token. Strangers and owned connections have separate places. A new connection is always accepted: if there are too many, the
 * least recently used one of the same kind is closed, usually one without a request in progress.
 */
import type { Server, Socket } from 'node:net';
import { descriptorsMax } from './descriptors.ts';
import { limits } from './limits.ts';

export interface ConnectionBounds {
  /** Connections whose owner is not known. */
  strangers_max: number;
  /** Connections whose owner is known. Above that, the owner with the most connections loses one. */
  owned_max: number;
  /** Connections of one owner. Absent: as many as fit. */
  per_owner_max?: number;
  /** A stranger without a request in progress is closed after this time. Absent: it may stay. */
  stranger_ms?: number;
}

/**
 * `strangers_max` of an internal listener: enough for a handshake to complete while somebody opens connections as fast as they can.
 */
export function anonymousMax(): number {
  const share = Math.floor(descriptorsMax() * limits.anonymous_connections_share);
  return Math.min(share, limits.anonymous_connections_max);
}

/** What identifies a connection. A TLS socket, and the socket of an HTTP/2 session, have the same addresses as their TCP socket. */
export type Place = Pick<Socket, 'remoteAddress' | 'remotePort' | 'localAddress'>;

/** Connections with the same owner, the least recently used ones first. */
class Group {
  readonly idle = new Set<Connection>();
  readonly busy = new Set<Connection>();

  get size(): number {
    return this.idle.size + this.busy.size;
  }

  has(connection: Connection): boolean {
    return this.idle.has(connection) || this.busy.has(connection);
  }

  /** The connection to close, never `spared`: an idle one if there are more than `idle_min`, otherwise a busy one if there is one. */
  leastRecent(spared: Connection, idle_min = 0): Connection | null {
    const in_order = this.idle.size > idle_min ? [this.idle, this.busy] : [this.busy, this.idle];
    for (const connections of in_order)
      for (const connection of connections) if (connection !== spared) return connection;
    return null;
  }
}

/** One connection. All methods may also be called after it has closed. */
export class Connection {
  readonly #connections: Connections;
  readonly #socket: Socket;
  #requests = 0;

  constructor(connections: Connections, socket: Socket) {
    this.#connections = connections;
    this.#socket = socket;
  }

  get is_busy(): boolean {
    return this.#requests > 0;
  }

  /** A request begins. */
  readonly begin = (): void => {
    this.#requests++;
    this.#connections.used(this);
  };

  /** A request ends. */
  readonly end = (): void => {
    this.#requests--;
    this.#connections.used(this);
  };

  /** Its owner is known from now on, and replaces an earlier one. */
  own(owner: string): void {
    this.#connections.own(this, owner);
  }

  /** It no longer counts, because its owner is trusted not to open too many. */
  release(): void {
    this.#connections.release(this);
  }

  destroy(): void {
    this.#socket.destroy();
  }
}

export class Connections {
  readonly #bounds: ConnectionBounds;
  /** Without these places, slow requests of strangers could leave no time for the first request of a new connection. */
  readonly #idle_min: number;
  readonly #open = new Map<string, Connection>();
  readonly #found = new WeakMap<Place, Connection>();
  readonly #strangers = new Group();
  readonly #owners = new Map<string, Group>();
  /** The owner of each connection that counts; null: a stranger. */
  readonly #counted = new Map<Connection, string | null>();
  readonly #timers = new Map<Connection, NodeJS.Timeout>();

  /** Counts the connections of `server` from now on. */
  constructor(server: Pick<Server, 'prependListener'>, bounds: ConnectionBounds) {
    this.#bounds = bounds;
    this.#idle_min = Math.ceil(bounds.strangers_max / 4);
    // Before the server's own listener, which may report an HTTP/2 session at once.
    server.prependListener('connection', (socket: Socket) => this.#add(socket));
  }

  /** The connection of a socket; undefined if the server did not accept it, or it has closed. */
  find(place: Place): Connection | undefined {
    const found = this.#found.get(place);
    if (found !== undefined) return found;
    try {
      const connection = this.#open.get(addressesOf(place));
      if (connection !== undefined) this.#found.set(place, connection);
      return connection;
    } catch {
      // The HTTP/2 session has closed and released its socket.
      return undefined;
    }
  }

  /** Closes all connections at once. */
  destroyAll(): void {
    for (const connection of this.#open.values()) connection.destroy();
  }

  /** Called by a connection when a request begins or ends. */
  used(connection: Connection): void {
    const group = this.#groupOf(connection);
    if (group === undefined) return;
    group.idle.delete(connection);
    group.busy.delete(connection);
    (connection.is_busy ? group.busy : group.idle).add(connection);
  }

  /** See `Connection.own`. */
  own(connection: Connection, owner: string): void {
    const before = this.#counted.get(connection);
    if (before === undefined || before === owner) return;
    this.release(connection);
    const group = this.#owners.get(owner) ?? new Group();
    this.#owners.set(owner, group);
    this.#counted.set(connection, owner);
    this.used(connection);
    if (group.size > (this.#bounds.per_owner_max ?? Number.POSITIVE_INFINITY)) this.#close(group, connection);
    const owned = this.#counted.size - this.#strangers.size;
    if (owned > this.#bounds.owned_max) this.#close(this.#largestGroup(connection), connection);
  }

  /** See `Connection.release`. */
  release(connection: Connection): void {
    const group = this.#groupOf(connection);
    if (group === undefined) return;
    group.idle.delete(connection);
    group.busy.delete(connection);
    const owner = this.#counted.get(connection);
    if (typeof owner === 'string' && group.size === 0) this.#owners.delete(owner);
    this.#counted.delete(connection);
    clearTimeout(this.#timers.get(connection));
    this.#timers.delete(connection);
  }

  #add(socket: Socket): void {
    const connection = new Connection(this, socket);
    const addresses = addressesOf(socket);
    this.#open.set(addresses, connection);
    this.#found.set(socket, connection);
    this.#counted.set(connection, null);
    this.used(connection);
    socket.once('close', () => {
      if (this.#open.get(addresses) === connection) this.#open.delete(addresses);
      this.release(connection);
    });
    const { strangers_max, stranger_ms } = this.#bounds;
    if (stranger_ms !== undefined) this.#timers.set(connection, this.#limitTime(connection, stranger_ms));
    if (this.#strangers.size > strangers_max) this.#close(this.#strangers, connection, this.#idle_min);
  }

  #limitTime(connection: Connection, ms: number): NodeJS.Timeout {
    const timer = setTimeout(() => {
      if (connection.is_busy) timer.refresh();
      else connection.destroy();
    }, ms);
    return timer.unref();
  }

  #groupOf(connection: Connection): Group | undefined {
    const owner = this.#counted.get(connection);
    return typeof owner === 'string' ? this.#owners.get(owner) : owner === null ? this.#strangers : undefined;
  }

  /** The owner's group with the most connections, other than `spared`. */
  #largestGroup(spared: Connection): Group {
    let largest = new Group();
    let largest_size = 0;
    for (const group of this.#owners.values()) {
      const size = group.has(spared) ? group.size - 1 : group.size;
      if (size > largest_size) [largest, largest_size] = [group, size];
    }
    return largest;
  }

  #close(group: Group, spared: Connection, idle_min?: number): void {
    const connection = group.leastRecent(spared, idle_min);
    if (connection === null) return;
    // Its place is free at once; the event `close` comes later.
    this.release(connection);
    connection.destroy();
  }
}

function addressesOf({ remoteAddress, remotePort, localAddress }: Place): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}
