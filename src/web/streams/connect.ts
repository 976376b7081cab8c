/**
 * The streams of this page in a real browser: through the worker that all pages share, or else with an owner in the page
 * itself. It listens to what the browser says: shown or hidden, online or not, put aside or taken out again.
 */
import { bounds } from './bounds.ts';
import type { ToPage } from './messages.ts';
import { Owner } from './owner.ts';
import { type Link, StreamsPage } from './page.ts';
import type { FromPort } from './worker.ts';

export type { AgentNews, StreamsState } from './page.ts';
export type Streams = Pick<
  StreamsPage,
  'state' | 'onFleet' | 'onReload' | 'onSignedOut' | 'watchAgent' | 'setToken' | 'nudge'
> & { close(): void };

export function openStreams({ token }: { token: string | null }): Streams {
  let has_worker = 'SharedWorker' in globalThis;
  const openLink = (receive: (message: ToPage) => void): Link => {
    try {
      if (has_worker) return linkToWorker(receive, withoutWorker);
    } catch {
      has_worker = false;
    }
    return linkInPage(receive);
  };
  const withoutWorker = () => {
    has_worker = false;
    page.connect();
  };
  const page = new StreamsPage({
    token,
    is_online: navigator.onLine,
    is_visible: document.visibilityState === 'visible',
    openLink,
  });
  const stop = new AbortController();
  const on = (target: EventTarget, name: string, listener: (event: Event) => void) =>
    target.addEventListener(name, listener, { signal: stop.signal });
  on(document, 'visibilitychange', () => page.setVisible(document.visibilityState === 'visible'));
  on(window, 'online', () => page.setOnline(true));
  on(window, 'offline', () => page.setOnline(false));
  on(window, 'pagehide', () => page.disconnect());
  on(window, 'pageshow', (event) => {
    if ((event as PageTransitionEvent).persisted) page.connect();
  });
  const pinging = setInterval(() => page.ping(), bounds.ping_ms);
  const close = () => {
    stop.abort();
    clearInterval(pinging);
    page.end();
  };
  return Object.assign(page, { close });
}

function linkToWorker(receive: (message: ToPage) => void, fail: () => void): Link {
  const worker = new SharedWorker(new URL('./worker.ts', import.meta.url), {
    type: 'module',
    name: 'svc-streams',
  });
  const { port } = worker;
  const post = (message: FromPort) => port.postMessage(message);
  const silent = setTimeout(fail, bounds.worker_hello_ms);
  worker.onerror = fail;
  port.onmessage = ({ data }: MessageEvent<ToPage>) => {
    clearTimeout(silent);
    worker.onerror = null;
    receive(data);
  };
  const life = Promise.withResolvers<void>();
  // Only secure contexts have locks, and random names.
  if (navigator.locks) {
    const name = `svc-page-${crypto.randomUUID()}`;
    void navigator.locks.request(name, () => {
      post({ type: 'lock', name });
      return life.promise;
    });
  }
  return {
    post,
    close: () => {
      clearTimeout(silent);
      worker.onerror = null;
      post({ type: 'bye' });
      life.resolve();
      port.close();
    },
  };
}

function linkInPage(receive: (message: ToPage) => void): Link {
  const owner = new Owner({ url: location.origin });
  // Told in a turn of its own, as a worker's words are.
  const seat = owner.join((message) => queueMicrotask(() => receive(message)));
  return { post: (message) => seat.receive(message), close: () => seat.leave() };
}
