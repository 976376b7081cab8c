/** Signs out: revokes the token, ends the session here in any case, and stops notifications on this device. */
import { Problem } from '../../core/problem.ts';
import { call } from './client.ts';
import { session } from './session.ts';

export async function signOut(): Promise<void> {
  const token = session.get()?.token;
  try {
    await call('logout');
  } catch (error) {
    // An invalid token is as good as signed out. A request that did not arrive must be reported.
    if (!(error instanceof Problem)) throw error;
  } finally {
    session.end(token);
    // The service removed the subscription with the token; this removes it from the browser.
    import('../push/device.ts').then(({ unsubscribeDevice }) => unsubscribeDevice()).catch(() => {});
  }
}
