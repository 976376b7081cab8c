/** Scripts of the UI that cannot be loaded: an upgrade of the service has removed them, or it does not respond. */

const MESSAGE = 'This page could not be loaded. Check that the service is running and try again.';
const missing = new WeakSet<Error>();

/** Gives the error a message for people. With the browser's message, the router would reload the page in any case. */
export function markMissing(error: Error): void {
  error.message = MESSAGE;
  missing.add(error);
}

export function isMissingScript(error: unknown): boolean {
  return error instanceof Error && missing.has(error);
}

/** Reloads the page if the service responds. Otherwise the browser would replace the page with one of its own. */
export async function reloadIfPossible(before?: () => void): Promise<void> {
  const headers = { accept: 'text/html' };
  const answer = await fetch(location.href, { method: 'HEAD', headers, cache: 'no-store' }).catch(() => null);
  if (!answer?.ok) return;
  before?.();
  location.reload();
}
