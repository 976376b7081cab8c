/**
 * Restricts where the plane sends notifications, because users choose the endpoint URLs. An endpoint must be `https` at a
 * public internet address. The address is checked for each connection, and the plane connects to exactly that address.
 * Configured push services (`push.origins`) may have private addresses, and may omit TLS on this machine. Link-local,
 * metadata, multicast and unassigned addresses are never used.
 */
import { type LookupAddress, lookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { isLoopback } from '../../core/config.ts';
import { problems } from '../../core/problem.ts';
import { isAllowedAddress, isHostName, isPublicAddress } from '../../link/plane/target.ts';
import { limits } from './limits.ts';

/** An address that must not be used. */
export class AddressRefused extends Error {
  constructor() {
    super(problems.pushEndpointRefused().message);
    this.name = 'AddressRefused';
  }
}

/** The endpoint of a subscription in its stored form. Throws if it is not allowed. */
export function checkEndpoint(text: string, own_origins: readonly string[]): string {
  const url = text.length <= limits.push_endpoint_chars_max && URL.canParse(text) ? new URL(text) : null;
  if (url?.username !== '' || url.password !== '' || url.hash !== '') {
    throw problems.pushEndpointInvalid();
  }
  const own = own_origins.includes(url.origin);
  const host = getHost(url);
  const plain = url.protocol === 'http:' && own && isLoopback(host);
  if (url.protocol !== 'https:' && !plain) throw problems.pushEndpointInvalid();
  if (isIP(host) ? !isGood(host, own) : !isHostName(host) || (isLoopback(host) && !own)) {
    throw problems.pushEndpointRefused();
  }
  return url.href;
}

/**
 * Resolves the host of an endpoint for a connection. An IP address is not resolved; if it is not allowed, this throws
 * immediately.
 */
export function createResolver(url: URL, own_origins: readonly string[]): LookupFunction {
  const own = own_origins.includes(url.origin);
  const host = getHost(url);
  if (isIP(host) && !isGood(host, own)) throw new AddressRefused();
  return (name, options, done) => {
    lookup(name, { ...options, all: true }, (error, found: LookupAddress[]) => {
      if (error) return done(error, '', 0);
      const good = found.filter(({ address }) => isGood(address, own));
      const [first] = good;
      if (first === undefined) return done(new AddressRefused(), '', 0);
      if (options.all) done(null, good);
      else done(null, first.address, first.family);
    });
  };
}

function isGood(address: string, own: boolean): boolean {
  return own ? isAllowedAddress(address) : isPublicAddress(address);
}

function getHost({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}
