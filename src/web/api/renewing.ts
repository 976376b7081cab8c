/** One tab at a time renews the session's token. Without a secure context browsers have no locks: then each tab for itself. */
export async function renewing<T>(act: () => Promise<T>): Promise<T> {
  const locks = globalThis.navigator?.locks as LockManager | undefined;
  return locks ? locks.request('svc.session', act) : act();
}
