/**
 * Notifications on this very device: whether it can have them, and what to do where it cannot; turning them on and off. The
 * browser holds the subscription, the service holds the record of it; they know each other by the endpoint's fingerprint.
 */
import { Problem } from '../../core/problem.ts';
import type { PushKind } from '../../features/notifications/rules.ts';
import { type Answered, all, call } from '../api/client.ts';

export type DeviceRecord = Answered<'createPushSubscription'>;

/** What a device is told. */
export interface Wishes {
  kinds: PushKind[];
  with_commands: boolean;
  of_others: boolean;
}

/**
 * `insecure`: the page came without TLS. `install`: this system wants the page on its home screen first. `denied`: the
 * person, or the browser's policy, refused once.
 */
export type Ability = 'able' | 'insecure' | 'install' | 'unsupported' | 'denied';

export function ability(): Ability {
  if (!isSecureContext) return 'insecure';
  const { userAgent, maxTouchPoints } = navigator;
  const ios = /iPhone|iPad|iPod/.test(userAgent) || (/Macintosh/.test(userAgent) && maxTouchPoints > 1);
  if (ios && !matchMedia('(display-mode: standalone)').matches) return 'install';
  if (!('serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window)) {
    return 'unsupported';
  }
  return Notification.permission === 'denied' ? 'denied' : 'able';
}

/** The browser's subscription; null when there is none. */
export async function subscriptionHere(): Promise<PushSubscription | null> {
  if (ability() !== 'able') return null;
  const worker = await navigator.serviceWorker.getRegistration();
  return (await worker?.pushManager.getSubscription()) ?? null;
}

/** As the service names an endpoint. */
export async function fingerprintOf({ endpoint }: { endpoint: string }): Promise<string> {
  return base64url(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(endpoint)));
}

/** Asks the person, the browser and the service. Throws what any of them answers. */
export async function turnOn(wishes: Wishes, before: PushSubscription | null = null): Promise<DeviceRecord> {
  if ((await Notification.requestPermission()) !== 'granted') {
    throw new Error('The browser was not allowed to show notifications.');
  }
  await navigator.serviceWorker.register('/sw.js');
  const worker = await navigator.serviceWorker.ready;
  const { public_key } = await call('getPushKey');
  const replaces = before?.endpoint;
  // One that was made for another key has to go first.
  const known = before ?? (await worker.pushManager.getSubscription());
  if (known && keyOf(known) !== public_key) await known.unsubscribe();
  const made = await worker.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: public_key,
  });
  return tell(made, public_key, wishes, replaces === made.endpoint ? undefined : replaces);
}

/** Changes what this device is told. */
export async function change(subscription: PushSubscription, wishes: Wishes): Promise<DeviceRecord> {
  return tell(subscription, keyOf(subscription), wishes);
}

/** Here and, where its record is known, at the service. */
export async function turnOff(device: DeviceRecord | undefined): Promise<void> {
  await forgetHere();
  if (!device) return;
  await call('deletePushSubscription', { params: { subscription_id: device.id } }).catch(unlessGone);
}

/** After signing out: the service has forgotten this device already. */
export async function forgetHere(): Promise<void> {
  await (await subscriptionHere())?.unsubscribe();
}

/**
 * Once the page is open: a device whose keys are no more subscribes again, one whose person has signed in anew belongs to
 * that sign-in, and one that the service has forgotten forgets too.
 */
export async function keepUp(): Promise<void> {
  const here = await subscriptionHere();
  if (!here || Notification.permission !== 'granted') return;
  const [fingerprint, devices, { public_key }] = await Promise.all([
    fingerprintOf(here),
    all('listPushSubscriptions'),
    call('getPushKey'),
  ]);
  const device = devices.find((one) => one.fingerprint === fingerprint);
  if (!device) await here.unsubscribe();
  else if (keyOf(here) !== public_key) await turnOn(device, here);
  else if (!device.current || device.status === 'expired') await change(here, device);
}

async function tell(
  subscription: PushSubscription,
  public_key: string | undefined,
  { kinds, with_commands, of_others }: Wishes,
  replaces?: string,
): Promise<DeviceRecord> {
  const { endpoint = '', keys = {} } = subscription.toJSON();
  const { p256dh = '', auth = '' } = keys;
  const body = { endpoint, keys: { p256dh, auth }, kinds, with_commands, of_others };
  return call('createPushSubscription', {
    body: {
      ...body,
      ...(public_key !== undefined && { public_key }),
      ...(replaces !== undefined && { replaces }),
    },
  });
}

/** The service's key that the browser subscribed with. */
function keyOf({ options }: PushSubscription): string | undefined {
  return options.applicationServerKey ? base64url(options.applicationServerKey) : undefined;
}

function base64url(bytes: ArrayBuffer): string {
  const text = btoa(String.fromCharCode(...new Uint8Array(bytes)));
  return text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

function unlessGone(error: unknown): void {
  if (!(error instanceof Problem) || error.kind !== 'not_found') throw error;
}
