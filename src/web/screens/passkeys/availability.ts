/** Whether passkeys work on this page: it depends on the service's origin and on the browser. */
import { type Answered, call } from '../../api/client.ts';

export type Place = Answered<'getRelyingParty'>;

/** The facts about this page that matter for passkeys. */
export interface PageLocation {
  origin: string;
  hostname: string;
  /** The browser supports passkeys on this page. */
  supported: boolean;
}

export interface Unavailable {
  text: string;
  /** An origin at which passkeys work. */
  origin?: string;
}

export function pageLocation(): PageLocation {
  const { origin, hostname } = location;
  return { origin, hostname, supported: typeof PublicKeyCredential === 'function' };
}

/** Why passkeys do not work on this page, and what to do; null if they do. */
export function unavailableReason(
  place: Place,
  { origin, hostname, supported }: PageLocation,
): Unavailable | null {
  if (place.origin === null) return { text: `Passkeys do not work here: ${place.reason}.` };
  if (origin !== place.origin) {
    const near = new URL(place.origin).hostname === 'localhost';
    if (near && !isLoopback(hostname)) {
      return {
        text: 'Passkeys do not work at this address. They need HTTPS and a hostname. Set web.rp_origin.',
      };
    }
    return { text: 'To use passkeys, open svc at', origin: place.origin };
  }
  return supported ? null : { text: 'This browser does not support passkeys.' };
}

function isLoopback(hostname: string): boolean {
  return hostname === '[::1]' || hostname.startsWith('127.') || hostname === 'localhost';
}

/** Whether passkeys work on this page; false if the service does not respond. */
export async function passkeysWork(): Promise<boolean> {
  return await call('getRelyingParty').then(
    (place) => unavailableReason(place, pageLocation()) === null,
    () => false,
  );
}
