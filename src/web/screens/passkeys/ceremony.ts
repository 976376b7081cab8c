/** The WebAuthn calls of the browser and the service. Loaded when needed. */
import {
  browserSupportsWebAuthnAutofill,
  type PublicKeyCredentialCreationOptionsJSON,
  startAuthentication,
  startRegistration,
  WebAuthnAbortService,
} from '@simplewebauthn/browser';
import { sleep } from '../../../base/async.ts';
import { Unreachable } from '../../../client/client.ts';
import { type Answered, call, errorMessage, newKey } from '../../api/client.ts';

/** How often the age of the challenge is checked. */
const CHECK_INTERVAL_MS = 1_000;
/** Pause before a challenge that could not be renewed is requested again. */
const RETRY_MS = 5_000;

type SignedIn = Answered<'finishPasskeyLogin'>;

/** Asks the signed-in user to create a passkey on this device. */
export async function addPasskey(input: {
  name: string;
  current_password?: string;
}): Promise<Answered<'finishPasskeyRegistration'>> {
  const { name, current_password } = input;
  const body = current_password === undefined ? {} : { current_password };
  const { options } = await call('startPasskeyRegistration', { body });
  const optionsJSON = options as PublicKeyCredentialCreationOptionsJSON;
  const response = await startRegistration({ optionsJSON });
  return call('finishPasskeyRegistration', { body: { name, response }, idempotency_key: newKey() });
}

/** Asks the user for a passkey. */
export async function signInWithPasskey(): Promise<SignedIn> {
  return signIn(await call('startPasskeyLogin'), false);
}

async function signIn(
  { login_id, options }: Answered<'startPasskeyLogin'>,
  useBrowserAutofill: boolean,
): Promise<SignedIn> {
  const response = await startAuthentication({ optionsJSON: options, useBrowserAutofill });
  return call('finishPasskeyLogin', { body: { login_id, response } });
}

/**
 * Lets the browser offer passkeys in the autofill of the form, until the user chooses one or the returned function is
 * called. Renews the challenge before it expires.
 */
export function offerPasskeys(listener: {
  onSignedIn: (answer: SignedIn) => void;
  onError: (error: unknown) => void;
}): () => void {
  const stopped = new AbortController();
  const offer = async () => {
    if (!(await browserSupportsWebAuthnAutofill())) return;
    for (let is_first = true; !stopped.signal.aborted; is_first = false) {
      const login = await (is_first ? call('startPasskeyLogin') : renewed(stopped.signal));
      if (stopped.signal.aborted) return;
      const renew_at = Date.now() + login.options.timeout * 0.8;
      // Not one timeout, because it would not count the time during which the device sleeps.
      const late = setInterval(() => {
        if (Date.now() >= renew_at) WebAuthnAbortService.cancelCeremony();
      }, CHECK_INTERVAL_MS);
      try {
        listener.onSignedIn(await signIn(login, true));
        return;
      } catch (error) {
        // Some browsers only notice now that they cannot offer any. Nobody has asked for one yet.
        if (error instanceof Error && error.name === 'NotSupportedError') return;
        if (!isAbort(error)) throw error;
      } finally {
        clearInterval(late);
      }
    }
  };
  offer().catch((error: unknown) => stopped.signal.aborted || listener.onError(error));
  return () => {
    stopped.abort();
    WebAuthnAbortService.cancelCeremony();
  };
}

/** A new challenge. Waits until the service answers: after the device has slept, its network may not be back. */
async function renewed(signal: AbortSignal): Promise<Answered<'startPasskeyLogin'>> {
  for (;;) {
    try {
      return await call('startPasskeyLogin');
    } catch (error) {
      if (!(error instanceof Unreachable) || signal.aborted) throw error;
      await sleep(RETRY_MS, signal);
    }
  }
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || /abort/i.test(error.message));
}

/** The message for a failed WebAuthn call. Browsers do not distinguish a refusal from a timeout. */
export function passkeyMessage(error: unknown): string {
  const name = error instanceof Error ? error.name : '';
  if (name === 'NotAllowedError' || name === 'AbortError')
    return 'The request was cancelled or timed out. Try again.';
  if (name === 'InvalidStateError') return 'This device already has a passkey for your account.';
  return errorMessage(error);
}
