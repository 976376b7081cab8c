/**
 * Where passkeys work: a browser makes and uses them for one domain, on pages of https and of `localhost` only, and an
 * address is no domain. So there is one origin for them: the one that `web.rp_origin` names, else `localhost`.
 */
import { type Config, parseAddress } from '../contract/config.ts';

export interface RelyingParty {
  /** The domain. */
  id: string;
  /** The one origin whose pages may use it. */
  origin: string;
  /** What browsers show. */
  name: string;
}

/** The relying party, or why there is none, in words for people. */
export type Place = { party: RelyingParty; reason: null } | { party: null; reason: string };

/** Listeners that `localhost` reaches. */
const NEAR = ['localhost', '127.0.0.1', '::1', '0.0.0.0', '::'];

/** `url`: of the listener, for its scheme and its port. */
export function placeOf(config: Pick<Config, 'get'>, url: string): Place {
  const rp_id = config.get('web.rp_id')?.toLowerCase() ?? null;
  const configured = config.get('web.rp_origin');
  if (configured === null && !NEAR.includes(parseAddress(config.get('server.listen'))?.host ?? ''))
    return none('passkeys need a host name and https: web.rp_origin is not set');
  const { origin, protocol, hostname } = new URL(configured ?? near(url));
  if (isAddress(hostname)) return none('passkeys need a host name: web.rp_origin has an address instead');
  if (protocol !== 'https:' && !isLocal(hostname)) return none('passkeys need https: web.rp_origin has http');
  const id = rp_id ?? hostname;
  if (id !== hostname && !hostname.endsWith(`.${id}`)) {
    return none(
      configured === null
        ? 'web.rp_id needs web.rp_origin'
        : 'web.rp_id must be the host of web.rp_origin, or a domain that it lies in',
    );
  }
  return { party: { id, origin, name: config.get('web.rp_name') }, reason: null };
}

function none(reason: string): Place {
  return { party: null, reason };
}

function near(url: string): string {
  const { protocol, port } = new URL(url);
  return `${protocol}//localhost${port && `:${port}`}`;
}

/** As a URL has them: four numbers, or brackets. */
function isAddress(hostname: string): boolean {
  return hostname.startsWith('[') || /^\d+(\.\d+){3}$/.test(hostname);
}

function isLocal(hostname: string): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost');
}
