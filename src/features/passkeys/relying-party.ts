/**
 * Determines where passkeys work: a browser creates and uses them for one domain, only on https pages and on `localhost`, and
 * an IP address is not a domain. So there is exactly one origin for them: `web.rp_origin`, or else `localhost`.
 */
import { type Config, parseAddress } from '../../core/config.ts';

export interface RelyingParty {
  /** The domain. */
  id: string;
  /** The only origin whose pages may use it. */
  origin: string;
  /** The name that browsers show. */
  name: string;
}

/** The relying party, or a human-readable reason why there is none. */
export type RelyingPartyState = { party: RelyingParty; reason: null } | { party: null; reason: string };

/** Listen addresses that `localhost` reaches. */
const NEAR = ['localhost', '127.0.0.1', '::1', '0.0.0.0', '::'];

/** `url`: the listener's, for its scheme and port. */
export function resolveRelyingParty(config: Pick<Config, 'get'>, url: string): RelyingPartyState {
  const rp_id = config.get('web.rp_id')?.toLowerCase() ?? null;
  const configured = config.get('web.rp_origin');
  if (configured === null && !NEAR.includes(parseAddress(config.get('server.listen'))?.host ?? ''))
    return none('passkeys need a host name and https: web.rp_origin is not set');
  const { origin, protocol, hostname } = new URL(configured ?? near(url));
  if (isAddress(hostname)) return none('passkeys need a host name: web.rp_origin has an IP address');
  if (protocol !== 'https:' && !isLocal(hostname)) return none('passkeys need https: web.rp_origin has http');
  const id = rp_id ?? hostname;
  if (id !== hostname && !hostname.endsWith(`.${id}`)) {
    return none(
      configured === null
        ? 'web.rp_id needs web.rp_origin'
        : 'web.rp_id must be the host of web.rp_origin, or a parent domain',
    );
  }
  return { party: { id, origin, name: config.get('web.rp_name') }, reason: null };
}

function none(reason: string): RelyingPartyState {
  return { party: null, reason };
}

function near(url: string): string {
  const { protocol, port } = new URL(url);
  return `${protocol}//localhost${port && `:${port}`}`;
}

/** Whether a URL's host is an IP address: four numbers, or brackets. */
function isAddress(hostname: string): boolean {
  return hostname.startsWith('[') || /^\d+(\.\d+){3}$/.test(hostname);
}

function isLocal(hostname: string): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost');
}
