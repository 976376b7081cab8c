/**
 * Bounds the connections of a listener, so that a program that only opens connections can use up neither the descriptors of this
 * process nor the places of others. A connection is anonymous until its owner is known, for example after a request with a valid
 * token. Anonymous and owned connections have separate places. A new connection is always accepted. If there are too many, the
 * network or the owner with the most of them loses the least recently used one, usually one without a request in progress.
 */
import type { Server, Socket } from 'node:net';
import { descriptorsMax } from './descriptors.ts';
import { limits } from './limits.ts';
import { networkPrefix } from './network.ts';

export interface ConnectionBounds {
  /** Connections whose owner is not known. Above that, the network with the most of them loses one. */
  anonymous_max: number;
  /** Connections whose owner is known. Above that, the owner with the most connections loses one. */
  owned_max: number;
  /** Connections of one owner. Absent: as many as fit. */
  per_owner_max?: number;
  /** An anonymous connection without a request in progress is closed after this time. Absent: it may stay. */
  anonymous_ms?: number;
}

/**
 * `anonymous_max` of an internal listener: enough for a handshake to complete while somebody opens connections as fast as they can.
 */
export function anonymousMax(): number {
  const share = Math.floor(descriptorsMax() * limits.anonymous_connections_share);
  return Math.min(share, limits.anonymous_connections_max);
}

/** What identifies a connection. A TLS socket, and the socket of an HTTP/2 session, have the same addresses as their TCP socket. */
export type Place = Pick<Socket, 'remoteAddress' | 'remotePort' | 'localAddress'>;

/** Without or with a request in progress. */
type Kind = 'idle' | 'busy';

/** Connections of the same owner, or anonymous ones from the same network, the least recently used ones first. */
class Group {
  readonly idle = new Set<Connection>();
  readonly busy = new Set<Connection>();

  get size(): number {
    return this.idle.size + this.busy.size;
  }

  has(connection: Connection): boolean {
    return this.idle.has(connection) || this.busy.has(connection);
  }

  /** Adds it, or makes it the most recently used one. */
  put(connection: Connection): void {
    this.remove(connection);
    (connection.is_busy ? this.busy : this.idle).add(connection);
  }

  remove(connection: Connection): void {
    this.idle.delete(connection);
    this.busy.delete(connection);
  }

  /** The connection to close, never `spared`: one of this kind if there is one. */
  leastRecent(spared: Connection, kind: Kind): Connection | null {
    for (const connections of kind === 'idle' ? [this.idle, this.busy] : [this.busy, this.idle])
      for (const connection of connections) if (connection !== spared) return connection;
    return null;
  }
}

/** The connections of one kind, by owner or by network. */
class Groups {
  readonly #groups = new Map<string, Group>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  find(name: string): Group | undefined {
    return this.#groups.get(name);
  }

  add(connection: Connection, name: string): Group {
    const group = this.#groups.get(name) ?? new Group();
    this.#groups.set(name, group);
    group.put(connection);
    this.#size++;
    return group;
  }

  remove(connection: Connection, name: string): void {
    const group = this.#groups.get(name)!;
    group.remove(connection);
    if (group.size === 0) this.#groups.delete(name);
    this.#size--;
  }

  /** How many connections are of this kind. */
  count(kind: Kind): number {
    return [...this.#groups.values()].reduce((sum, group) => sum + group[kind].size, 0);
  }

  /** The group with the most connections, of this kind if it is given, other than `spared`. */
  largest(spared: Connection, kind?: Kind): Group {
    let largest = new Group();
    let largest_size = 0;
    for (const group of this.#groups.values()) {
      const connections = kind === undefined ? group : group[kind];
      const size = connections.size - (connections.has(spared) ? 1 : 0);
      if (size > largest_size) [largest, largest_size] = [group, size];
    }
    return largest;
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
  /** Without these places, slow anonymous requests could leave no time for the first request of a new connection. */
  readonly #idle_min: number;
  readonly #open = new Map<string, Connection>();
  readonly #found = new WeakMap<Place, Connection>();
  /** By network. */
  readonly #anonymous = new Groups();
  readonly #owned = new Groups();
  /** Where each connection is that counts. */
  readonly #counted = new Map<Connection, { groups: Groups; name: string }>();
  readonly #timers = new Map<Connection, NodeJS.Timeout>();

  /** Counts the connections of `server` from now on. */
  constructor(server: Pick<Server, 'prependListener'>, bounds: ConnectionBounds) {
    this.#bounds = bounds;
    this.#idle_min = Math.ceil(bounds.anonymous_max / 4);
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
    const place = this.#counted.get(connection);
    place?.groups.find(place.name)?.put(connection);
  }

  /** See `Connection.own`. */
  own(connection: Connection, owner: string): void {
    const before = this.#counted.get(connection);
    if (before === undefined || (before.groups === this.#owned && before.name === owner)) return;
    this.release(connection);
    const group = this.#count(connection, this.#owned, owner);
    const { owned_max, per_owner_max = Number.POSITIVE_INFINITY } = this.#bounds;
    if (group.size > per_owner_max) this.#close(group, connection);
    if (this.#owned.size > owned_max) this.#close(this.#owned.largest(connection), connection);
  }

  /** See `Connection.release`. */
  release(connection: Connection): void {
    const place = this.#counted.get(connection);
    if (place === undefined) return;
    place.groups.remove(connection, place.name);
    this.#counted.delete(connection);
    clearTimeout(this.#timers.get(connection));
    this.#timers.delete(connection);
  }

  #add(socket: Socket): void {
    const connection = new Connection(this, socket);
    const addresses = addressesOf(socket);
    this.#open.set(addresses, connection);
    this.#found.set(socket, connection);
    this.#count(connection, this.#anonymous, networkPrefix(socket.remoteAddress ?? null));
    socket.once('close', () => {
      if (this.#open.get(addresses) === connection) this.#open.delete(addresses);
      this.release(connection);
    });
    const { anonymous_max, anonymous_ms } = this.#bounds;
    if (anonymous_ms !== undefined) this.#timers.set(connection, this.#limitTime(connection, anonymous_ms));
    if (this.#anonymous.size <= anonymous_max) return;
    const kind = this.#anonymous.count('idle') > this.#idle_min ? 'idle' : 'busy';
    this.#close(this.#anonymous.largest(connection, kind), connection, kind);
  }

  #count(connection: Connection, groups: Groups, name: string): Group {
    this.#counted.set(connection, { groups, name });
    return groups.add(connection, name);
  }

  #limitTime(connection: Connection, ms: number): NodeJS.Timeout {
    const timer = setTimeout(() => {
      if (connection.is_busy) timer.refresh();
      else connection.destroy();
    }, ms);
    return timer.unref();
  }

  #close(group: Group, spared: Connection, kind: Kind = 'idle'): void {
    const connection = group.leastRecent(spared, kind);
    if (connection === null) return;
    // Its place is free at once; the event `close` comes later.
    this.release(connection);
    connection.destroy();
  }
}

function addressesOf({ remoteAddress, remotePort, localAddress }: Place): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}
