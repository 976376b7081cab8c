/**
 * The addresses to which the plane may connect. A target is exactly `https://<host>:<port>`, in a single spelling. Its
 * name is resolved again for every connection, and the plane connects to the address that it checked, so the name
 * cannot change in between. Private and loopback addresses are allowed, because nodes use them. Link-local, metadata,
 * multicast and unassigned addresses are rejected.
 */
import { lookup } from 'node:dns/promises';
import { isIP, isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { limits as sharedLimits } from '../../base/limits.ts';
import { problems } from '../../core/problem.ts';
import { limits } from '../limits.ts';

export interface Target {
  /** A lower-case name or an address, IPv6 without brackets. */
  host: string;
  port: number;
}

const TARGET = /^https:\/\/(?:\[([0-9A-Fa-f:.]+)\]|([0-9A-Za-z._-]+)):([1-9]\d{0,4})$/;
const LABEL = /^[0-9a-z_](?:[0-9a-z_-]{0,61}[0-9a-z_])?$/;

/** Null for anything but `https://<host>:<port>` with a plain host name, a dotted IPv4 or a bracketed IPv6 address. */
export function parseTarget(text: string): Target | null {
  const [, address, name, digits] = TARGET.exec(text) ?? [];
  const port = Number(digits);
  if (!(port <= 65_535)) return null;
  if (address !== undefined) return isIPv6(address) ? { host: address.toLowerCase(), port } : null;
  const host = name!.toLowerCase();
  return isHostName(host) || isIPv4(host) ? { host, port } : null;
}

/** A plain DNS name. Names that resolvers parse as a number (`127.1`, `0x7f000001`) are not. */
export function isHostName(text: string): boolean {
  const labels = text.toLowerCase().split('.');
  return (
    text.length <= sharedLimits.host_name_chars_max &&
    labels.every((label) => LABEL.test(label)) &&
    !/^(\d+|0x[0-9a-f]*)$/.test(labels.at(-1)!)
  );
}

const allowed_ranges: ReadonlySet<string> = new Set([
  'unicast',
  'private',
  'loopback',
  'uniqueLocal',
  'carrierGradeNat',
  // Overlay networks use such addresses, for example 0200::/7.
  'unassigned',
]);
const public_ranges: ReadonlySet<string> = new Set(['unicast']);

/** Metadata services outside the link-local ranges. */
const metadata = new Set([
  '100.100.100.200',
  '168.63.129.16',
  'fd00:ec2::254',
  'fd00:ec2::23',
  'fd20:ce::254',
]);

/** Whether the plane may connect to this address. An IPv4 address embedded in an IPv6 one is checked as IPv4. */
export function isAllowedAddress(address: string): boolean {
  return isWithin(address, allowed_ranges);
}

/**
 * Like `isAllowedAddress`, but accepts only addresses of the public internet. For addresses from users other than root.
 */
export function isPublicAddress(address: string): boolean {
  return isWithin(address, public_ranges);
}

function isWithin(address: string, ranges: ReadonlySet<string>): boolean {
  if (isIP(address) === 0 || address.includes('%')) return false;
  const parsed = ipaddr.parse(address);
  if (parsed.kind() === 'ipv6') {
    const inner = innerIpv4(parsed as ipaddr.IPv6);
    if (inner !== null) return isWithin(inner, ranges);
  }
  return ranges.has(rangeOf(parsed)) && !metadata.has(parsed.toString());
}

/**
 * The library returns `unicast` for every address outside its ranges. In IPv6, only 2000::/3 is global (RFC 4291, 2.4).
 */
function rangeOf(address: ipaddr.IPv4 | ipaddr.IPv6): string {
  const range = address.range();
  if (range !== 'unicast' || address.kind() === 'ipv4') return range;
  const bytes = address.toByteArray();
  if (bytes[0]! >> 5 === 0b001) return 'unicast';
  return bytes.slice(0, 12).every((byte) => byte === 0) ? 'ipv4Compatible' : 'unassigned';
}

/**
 * Resolves a host to its allowed addresses, in the resolver's order. Throws `grpc_target address is not allowed` if it
 * has only other addresses, and `failed to connect to remote node` if it has none or the resolver does not answer in
 * time.
 */
export async function resolveTarget(host: string): Promise<string[]> {
  const addresses = isIP(host) ? [host] : await resolve(host);
  const allowed_addresses = addresses.filter(isAllowedAddress);
  if (allowed_addresses.length > 0) return allowed_addresses;
  throw addresses.length > 0 ? problems.targetRefused() : problems.nodeUnreachable();
}

async function resolve(host: string): Promise<string[]> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(problems.nodeUnreachable()), limits.resolve_ms);
  });
  try {
    const found = await Promise.race([lookup(host, { all: true }), timeout]);
    return found.map(({ address }) => address);
  } catch {
    throw problems.nodeUnreachable();
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The forms of an IPv6 address that the kernel or a router treats as IPv4: mapped, and with the well-known NAT64
 * prefix.
 */
function innerIpv4(address: ipaddr.IPv6): string | null {
  const bytes = address.toByteArray();
  const nat64 = address.range() === 'rfc6052' && bytes.slice(4, 12).every((byte) => byte === 0);
  return address.range() === 'ipv4Mapped' || nat64 ? bytes.slice(12).join('.') : null;
}
