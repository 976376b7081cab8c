/** Signing out: the token ends on the server too, and here in any case; this device is told nothing more. */
import { Problem } from '../../core/problem.ts';
import { call } from './client.ts';
import { session } from './session.ts';

export async function signOut(): Promise<void> {
  const token = session.get()?.token;
  try {
    await call('logout');
  } catch (error) {
    // It was no good any more: the same as signed out. What did not arrive, a person should know of.
    if (!(error instanceof Problem)) throw error;
  } finally {
    session.end(token);
    // The service has forgotten it with the token; this is the browser's half.
    import('../push/device.ts').then(({ forgetHere }) => forgetHere()).catch(() => {});
  }
}
