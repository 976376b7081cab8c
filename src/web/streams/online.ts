/**
 * Whether the network reaches the service. A browser that is offline may still reach a service on the same machine, so the
 * service is asked at once, and then every few seconds until the browser is online again.
 */
import { bounds } from './bounds.ts';

let is_online = true;
let has_begun = false;
let next: ReturnType<typeof setTimeout> | undefined;
/** Ends the request in progress. */
let request = new AbortController();
const listeners = new Set<() => void>();

export const online = {
  get: (): boolean => is_online,
  /** `listener` is also called if the browser is online again and nothing has changed: older connections may be dead. */
  subscribe(listener: () => void): () => void {
    listeners.add(listener);
    if (!has_begun) begin();
    return () => listeners.delete(listener);
  },
};

function begin(): void {
  has_begun = true;
  window.addEventListener('online', () => void check());
  window.addEventListener('offline', () => void check());
  if (!navigator.onLine) void check();
}

async function check(): Promise<void> {
  clearTimeout(next);
  request.abort();
  if (navigator.onLine) {
    report(true);
    return;
  }
  request = new AbortController();
  const { signal } = request;
  const answers = await fetch('/healthz', {
    cache: 'no-store',
    // A redirect, for example by a proxy, has come over the network too.
    redirect: 'manual',
    signal: AbortSignal.any([signal, AbortSignal.timeout(bounds.online_check_ms)]),
  }).then(
    () => true,
    () => false,
  );
  if (signal.aborted) return;
  next = setTimeout(() => void check(), bounds.online_check_ms);
  if (answers !== is_online) report(answers);
}

function report(now: boolean): void {
  is_online = now;
  for (const listener of [...listeners]) listener();
}
