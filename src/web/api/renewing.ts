/** Lets one tab at a time renew the session's token. Outside a secure context there are no locks, and each tab acts alone. */
export async function renewing<T>(act: () => Promise<T>): Promise<T> {
  const locks = globalThis.navigator?.locks as LockManager | undefined;
  return locks ? locks.request('svc.session', act) : act();
}
