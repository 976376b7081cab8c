/** What the browser is asked to do with passkeys, and what the service makes of it. Loaded when somebody needs it. */
import {
  browserSupportsWebAuthnAutofill,
  type PublicKeyCredentialCreationOptionsJSON,
  startAuthentication,
  startRegistration,
  WebAuthnAbortService,
} from '@simplewebauthn/browser';
import { type Answered, call, newKey, wordsOf } from '../api/client.ts';

type SignedIn = Answered<'finishPasskeyLogin'>;

/** Asks the person to make a passkey here, for the one who is signed in. */
export async function addPasskey(given: {
  name: string;
  current_password?: string;
}): Promise<Answered<'finishPasskeyRegistration'>> {
  const { name, current_password } = given;
  const body = current_password === undefined ? {} : { current_password };
  const { options } = await call('startPasskeyRegistration', { body });
  const optionsJSON = options as PublicKeyCredentialCreationOptionsJSON;
  const response = await startRegistration({ optionsJSON });
  return call('finishPasskeyRegistration', { body: { name, response }, idempotency_key: newKey() });
}

/** Asks the person for a passkey of theirs. */
export async function signInByPasskey(): Promise<SignedIn> {
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
 * Has the browser offer passkeys in the form, among what it fills in, until one is chosen or it is stopped. The challenge
 * is renewed before it is over.
 */
export function offerPasskeys(told: {
  onSignedIn: (answer: SignedIn) => void;
  onError: (error: unknown) => void;
}): () => void {
  const stopped = new AbortController();
  const offer = async () => {
    if (!(await browserSupportsWebAuthnAutofill())) return;
    while (!stopped.signal.aborted) {
      const asked = await call('startPasskeyLogin');
      if (stopped.signal.aborted) return;
      const late = setTimeout(() => WebAuthnAbortService.cancelCeremony(), asked.options.timeout * 0.8);
      try {
        told.onSignedIn(await signIn(asked, true));
        return;
      } catch (error) {
        if (!isAbort(error)) throw error;
      } finally {
        clearTimeout(late);
      }
    }
  };
  offer().catch((error: unknown) => stopped.signal.aborted || told.onError(error));
  return () => {
    stopped.abort();
    WebAuthnAbortService.cancelCeremony();
  };
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || /abort/i.test(error.message));
}

/** Browsers do not tell whether somebody said no or nobody said anything. */
export function passkeyWords(error: unknown): string {
  const name = error instanceof Error ? error.name : '';
  if (name === 'NotAllowedError' || name === 'AbortError')
    return 'Nothing was done: it was cancelled, or it took too long.';
  if (name === 'InvalidStateError') return 'This device has a passkey of yours already.';
  return wordsOf(error);
}
