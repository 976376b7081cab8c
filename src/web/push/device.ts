/**
 * Push notifications on this device: whether the browser supports them, and turning them on and off. The browser holds the
 * subscription and the service has a record of it; the endpoint's fingerprint identifies both.
 */
import { Problem } from '../../core/problem.ts';
import type { PushKind } from '../../features/notifications/rules.ts';
import { type Answered, all, call } from '../api/client.ts';

export type DeviceRecord = Answered<'createPushSubscription'>;

/** Which notifications a device receives. */
export interface Preferences {
  kinds: PushKind[];
  with_commands: boolean;
  of_others: boolean;
}

/**
 * `insecure`: the page was loaded without TLS. `install`: the system requires the page on the home screen first. `denied`:
 * the user or a browser policy denied permission.
 */
export type PushSupport = 'supported' | 'insecure' | 'install' | 'unsupported' | 'denied';

export function pushSupport(): PushSupport {
  if (!isSecureContext) return 'insecure';
  const { userAgent, maxTouchPoints } = navigator;
  const ios = /iPhone|iPad|iPod/.test(userAgent) || (/Macintosh/.test(userAgent) && maxTouchPoints > 1);
  if (ios && !matchMedia('(display-mode: standalone)').matches) return 'install';
  if (!('serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window)) {
    return 'unsupported';
  }
  return Notification.permission === 'denied' ? 'denied' : 'supported';
}

/** The browser's subscription; null if none exists. */
export async function currentSubscription(): Promise<PushSubscription | null> {
  if (pushSupport() !== 'supported') return null;
  const worker = await navigator.serviceWorker.getRegistration();
  return (await worker?.pushManager.getSubscription()) ?? null;
}

/** The fingerprint by which the service identifies an endpoint. */
export async function fingerprintEndpoint({ endpoint }: { endpoint: string }): Promise<string> {
  return base64url(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(endpoint)));
}

/** Asks the user for permission, then subscribes at the browser and the service. Throws the first failure. */
export async function turnOn(
  preferences: Preferences,
  before: PushSubscription | null = null,
): Promise<DeviceRecord> {
  if ((await Notification.requestPermission()) !== 'granted') {
    throw new Error(
      'This browser does not let svc show notifications. Allow them in the browser’s settings for this site.',
    );
  }
  await navigator.serviceWorker.register('/sw.js');
  const worker = await navigator.serviceWorker.ready;
  const { public_key } = await call('getPushKey');
  const replaces = before?.endpoint;
  // A subscription for another key must be removed first.
  const known = before ?? (await worker.pushManager.getSubscription());
  if (known && serverKey(known) !== public_key) await known.unsubscribe();
  const created = await worker.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: public_key,
  });
  return register(created, public_key, preferences, replaces === created.endpoint ? undefined : replaces);
}

/** Changes which notifications this device receives. */
export async function updatePreferences(
  subscription: PushSubscription,
  preferences: Preferences,
): Promise<DeviceRecord> {
  return register(subscription, serverKey(subscription), preferences);
}

/** Unsubscribes the browser and, if `device` is given, deletes its record. */
export async function turnOff(device: DeviceRecord | undefined): Promise<void> {
  await unsubscribeDevice();
  if (!device) return;
  await call('deletePushSubscription', { params: { subscription_id: device.id } }).catch(ignoreMissing);
}

/** Unsubscribes the browser. The service removes the record when the user signs out. */
export async function unsubscribeDevice(): Promise<void> {
  await (await currentSubscription())?.unsubscribe();
}

/**
 * Called when a page opens, and on the device that rotates the keys. Subscribes again if the service's keys have changed,
 * attaches the subscription to a new sign-in, and unsubscribes if the service has no record of it.
 */
export async function syncSubscription(): Promise<void> {
  const here = await currentSubscription();
  if (!here || Notification.permission !== 'granted') return;
  const [fingerprint, devices, { public_key }] = await Promise.all([
    fingerprintEndpoint(here),
    all('listPushSubscriptions'),
    call('getPushKey'),
  ]);
  const device = devices.find((device) => device.fingerprint === fingerprint);
  if (!device) await here.unsubscribe();
  else if (serverKey(here) !== public_key) await turnOn(device, here);
  else if (!device.current || device.status === 'expired') await updatePreferences(here, device);
}

async function register(
  subscription: PushSubscription,
  public_key: string | undefined,
  { kinds, with_commands, of_others }: Preferences,
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

/** The service's public key with which the browser subscribed. */
function serverKey({ options }: PushSubscription): string | undefined {
  return options.applicationServerKey ? base64url(options.applicationServerKey) : undefined;
}

function base64url(bytes: ArrayBuffer): string {
  const text = btoa(String.fromCharCode(...new Uint8Array(bytes)));
  return text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof Problem) || error.kind !== 'not_found') throw error;
}
