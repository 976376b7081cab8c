/** Which clients count as one, where failures and requests are counted by address. */
import ipaddr from 'ipaddr.js';

/**
 * The network of a client's address: an IPv4 address, or the /64 that an IPv6 host has to itself. All addresses of this machine
 * for itself (127.0.0.0/8 and ::1) are one network, because every local program can use all of them.
 */
export function networkPrefix(ip: string | null): string {
  if (ip === null || !ipaddr.isValid(ip)) return 'unknown';
  const address = ipaddr.process(ip);
  if (address.range() === 'loopback') return 'loopback';
  if (address.kind() === 'ipv4') return address.toString();
  return ipaddr.IPv6.networkAddressFromCIDR(`${ip.split('%')[0]}/64`).toString();
}
