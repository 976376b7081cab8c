/**
 * Where the plane sends notifications. Every user may name an endpoint, so it is a URL that others chose: `https` at an
 * address of the public internet, checked when it is dialled, and what is dialled is the address that was checked. Push
 * services of one's own (`push.origins`) may have private addresses, and on this machine do without TLS. What answers for
 * the machine or its cloud, for many, or for nobody is never dialled.
 */
import { type LookupAddress, lookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { limits } from '../../base/limits.ts';
import { isLoopback } from '../../contract/config.ts';
import { problems } from '../../domain/problem.ts';
import { isAllowedAddress, isHostName, isPublicAddress } from '../../link/target.ts';

/** An address that is not dialled. */
export class AddressRefused extends Error {
  constructor() {
    super(problems.pushEndpointRefused().message);
    this.name = 'AddressRefused';
  }
}

/** The endpoint of a subscription, as it is stored. Throws unless something may ever be sent there. */
export function checkEndpoint(text: string, own_origins: readonly string[]): string {
  const url = text.length <= limits.push_endpoint_chars_max && URL.canParse(text) ? new URL(text) : null;
  if (url?.username !== '' || url.password !== '' || url.hash !== '') {
    throw problems.pushEndpointInvalid();
  }
  const own = own_origins.includes(url.origin);
  const host = hostOf(url);
  const plain = url.protocol === 'http:' && own && isLoopback(host);
  if (url.protocol !== 'https:' && !plain) throw problems.pushEndpointInvalid();
  if (isIP(host) ? !isGood(host, own) : !isHostName(host) || (isLoopback(host) && !own)) {
    throw problems.pushEndpointRefused();
  }
  return url.href;
}

/** How the host of an endpoint is resolved for a connection. A request to an address is not resolved: throws here then. */
export function resolverOf(url: URL, own_origins: readonly string[]): LookupFunction {
  const own = own_origins.includes(url.origin);
  const host = hostOf(url);
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

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}
