/**
 * Checks the Host and Origin headers of a request: an exact list of hosts, against DNS rebinding, and an exact list
 * of origins, against other sites. There is no CORS and there are no cookies; a request authenticates only with its
 * bearer token.
 */
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { isLoopback } from '../core/config.ts';
import { invalid, problems } from '../core/problem.ts';

export interface GuardOptions {
  scheme: 'http' | 'https';
  /** The configured address and the actual port of the listener. */
  host: string;
  port: number;
  /** The origin that people use, `scheme://host[:port]`, if it differs from the listener's own. */
  public_origin: string | null;
}

export class Guard {
  readonly #hosts = new Set<string>();
  readonly #origins = new Set<string>();
  readonly #scheme: 'http' | 'https';
  readonly #port: number;
  /** Bound to all addresses: accepts the local address of the connection, but no unknown names. */
  readonly #any_address: boolean;

  constructor(options: GuardOptions) {
    this.#scheme = options.scheme;
    this.#port = options.port;
    this.#any_address = options.host === '0.0.0.0' || options.host === '::';
    for (const name of new Set([options.host, 'localhost', '127.0.0.1', '::1'])) {
      for (const host of hostForms(name, options.port, options.scheme)) {
        this.#hosts.add(host);
        this.#origins.add(`${options.scheme}://${host}`);
      }
    }
    if (options.public_origin !== null) {
      const url = new URL(options.public_origin);
      this.#origins.add(url.origin);
      this.#hosts.add(url.host);
      if (url.port === '') this.#hosts.add(`${url.hostname}:${url.protocol === 'https:' ? 443 : 80}`);
    }
  }

  /**
   * Throws unless there is exactly one known Host and no foreign Origin. `page`: the request is for a page that links from
   * other sites may open.
   */
  check(request: IncomingMessage, page: boolean): void {
    if (request.url?.[0] !== '/') throw invalid('request target must be a path', 'invalid_target');
    const host = this.#host(request);
    const local = this.#any_address && host === localHost(request, this.#port);
    if (!local && !this.#hosts.has(host)) throw problems.unknownHost();

    const { origin } = request.headers;
    if (
      origin !== undefined &&
      !this.#origins.has(origin) &&
      !(local && origin === `${this.#scheme}://${host}`)
    ) {
      throw problems.originNotAllowed();
    }
    if (request.headers['sec-fetch-site'] === 'cross-site') {
      const isNavigation = page && request.headers['sec-fetch-mode'] === 'navigate';
      if (!isNavigation || request.method !== 'GET') throw problems.originNotAllowed();
    }
  }

  /** Returns the single Host header. Rejects header names that JavaScript treats specially. */
  #host(request: IncomingMessage): string {
    const raw = request.rawHeaders;
    let host: string | undefined;
    for (let i = 0; i < raw.length; i += 2) {
      const name = raw[i]!;
      if (name.length === 4 && name.toLowerCase() === 'host') {
        if (host !== undefined) throw invalid('duplicate host header', 'duplicate_host');
        host = raw[i + 1]!;
      } else if (name === '__proto__') {
        throw invalid('__proto__ is not allowed', 'forbidden_header');
      }
    }
    if (!host) throw invalid('missing host header', 'missing_host');
    return host.toLowerCase();
  }
}

function hostForms(name: string, port: number, scheme: 'http' | 'https'): string[] {
  const host = isIP(name) === 6 ? `[${name}]` : name.toLowerCase();
  const standard = port === (scheme === 'https' ? 443 : 80);
  return standard ? [host, `${host}:${port}`] : [`${host}:${port}`];
}

function localHost(request: IncomingMessage, port: number): string {
  const address = plainAddress(request.socket.localAddress) ?? '';
  return `${isIP(address) === 6 ? `[${address}]` : address}:${port}`;
}

/** Returns an IPv4-mapped IPv6 address as IPv4. */
export function plainAddress(address: string | undefined): string | null {
  if (address === undefined) return null;
  return address.startsWith('::ffff:') && isIP(address.slice(7)) === 4 ? address.slice(7) : address;
}

/** The clients of requests from other planes. */
const clients = new WeakMap<IncomingMessage, { address: string | null }>();

/**
 * Records that another plane forwarded the request, has checked its Host and Origin, and that its client has this address (null:
 * unknown). Only for requests from a plane's listener for other planes.
 */
export function acceptForwarded(request: IncomingMessage, address: string | null): void {
  clients.set(request, { address });
}

/** Whether another plane forwarded the request. No header can make it true. */
export function isForwarded(request: IncomingMessage): boolean {
  return clients.has(request);
}

const FORWARDED = ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via'];

/**
 * Whether the caller is a process on this machine that connects directly. A proxy on this machine is detected by its
 * forwarding headers or by the Host name that it passes on.
 */
export function isFromLoopback(request: IncomingMessage): boolean {
  if (isForwarded(request)) return false;
  const address = plainAddress(request.socket.remoteAddress);
  if (address === null || FORWARDED.some((name) => request.headers[name] !== undefined)) return false;
  return isLoopback(address) && isLoopback(hostName(request.headers.host ?? ''));
}

function hostName(host: string): string {
  return host
    .replace(/:\d+$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .toLowerCase();
}

/**
 * The client's address: that of the peer or, behind a proxy, the last address that the proxy names. For a forwarded request,
 * the address that the other plane found in the same way.
 */
export function clientAddress(request: IncomingMessage, behind_proxy: boolean): string | null {
  const forwarded_client = clients.get(request);
  if (forwarded_client !== undefined) return forwarded_client.address;
  const peer = plainAddress(request.socket.remoteAddress);
  if (!behind_proxy) return peer;
  const forwarded = request.headers['x-forwarded-for'];
  const last = (Array.isArray(forwarded) ? forwarded.join(',') : forwarded)?.split(',').at(-1)?.trim();
  return last && isIP(last) ? plainAddress(last) : peer;
}
