/** Whether this page can have passkeys: the service says where they work, the browser whether it knows them. */
import { type Answered, call } from '../api/client.ts';

export type Place = Answered<'getRelyingParty'>;

/** This page, as far as passkeys go. */
export interface Here {
  origin: string;
  hostname: string;
  /** The browser has them, on this page. */
  known: boolean;
}

export interface Hindrance {
  words: string;
  /** Where it does work. */
  origin?: string;
}

export function here(): Here {
  const { origin, hostname } = location;
  return { origin, hostname, known: typeof PublicKeyCredential === 'function' };
}

/** Why there can be no passkeys on this page, and what to do; null where there can. */
export function hindrance(place: Place, { origin, hostname, known }: Here): Hindrance | null {
  if (place.origin === null) return { words: `There are no passkeys here: ${place.reason}.` };
  if (origin !== place.origin) {
    const near = new URL(place.origin).hostname === 'localhost';
    if (near && !isLoopback(hostname)) {
      return {
        words:
          'Agents work at this address; passkeys do not: they need https and a host name, set as web.rp_origin.',
      };
    }
    return { words: 'Passkeys work under another name of this service:', origin: place.origin };
  }
  return known ? null : { words: 'This browser has no passkeys.' };
}

function isLoopback(hostname: string): boolean {
  return hostname === '[::1]' || hostname.startsWith('127.') || hostname === 'localhost';
}

/** Whether there can be passkeys on this page; also false when the service does not say. */
export async function passkeysWork(): Promise<boolean> {
  return await call('getRelyingParty').then(
    (place) => hindrance(place, here()) === null,
    () => false,
  );
}
