/**
 * Whether the network reaches the service. That the browser is offline is only a reason to ask: a service on the same machine
 * still answers. While the browser is offline, the service is asked every few seconds.
 */
import { bounds } from './bounds.ts';

let is_online = true;
let has_begun = false;
let next: ReturnType<typeof setTimeout> | undefined;
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
  window.addEventListener('online', check);
  window.addEventListener('offline', check);
  if (!navigator.onLine) check();
}

function check(): void {
  clearTimeout(next);
  if (navigator.onLine) {
    report(true);
    return;
  }
  next = setTimeout(check, bounds.online_check_ms);
  const asked = fetch('/healthz', { cache: 'no-store', signal: AbortSignal.timeout(bounds.online_check_ms) });
  // An error of a proxy has come over the network too.
  void asked.then(
    () => is_online || report(true),
    () => navigator.onLine || report(false),
  );
}

function report(now: boolean): void {
  is_online = now;
  for (const listener of [...listeners]) listener();
}
