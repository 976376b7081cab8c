/**
 * Connects this page to a stream hub: in the worker that all pages share, or else in the page itself. Forwards the
 * browser's events about visibility, network and the back/forward cache.
 */
import { bounds } from './bounds.ts';
import { type HubConnection, StreamClient } from './client.ts';
import { StreamHub } from './hub.ts';
import type { ToClient } from './messages.ts';
import { online } from './online.ts';
import type { FromPort } from './worker.ts';

export type { AgentNews, StreamsState } from './client.ts';
export type Streams = Pick<
  StreamClient,
  'state' | 'onFleet' | 'onReload' | 'onSignedOut' | 'watchAgent' | 'setToken' | 'reconnect'
> & { close(): void };

export function openStreams({ token }: { token: string | null }): Streams {
  let has_worker = 'SharedWorker' in globalThis;
  const connectToHub = (receive: (message: ToClient) => void): HubConnection => {
    try {
      if (has_worker) return connectToWorker(receive, withoutWorker);
    } catch {
      has_worker = false;
    }
    return connectInPage(receive);
  };
  const withoutWorker = () => {
    has_worker = false;
    page.connect();
  };
  const page = new StreamClient({
    token,
    is_online: online.get(),
    is_visible: document.visibilityState === 'visible',
    connectToHub,
  });
  const stop = new AbortController();
  const on = (target: EventTarget, name: string, listener: (event: Event) => void) =>
    target.addEventListener(name, listener, { signal: stop.signal });
  on(document, 'visibilitychange', () => page.setVisible(document.visibilityState === 'visible'));
  const stopOnline = online.subscribe(() => page.setOnline(online.get()));
  on(window, 'pagehide', () => page.disconnect());
  on(window, 'pageshow', (event) => {
    if ((event as PageTransitionEvent).persisted) page.connect();
  });
  const pinging = setInterval(() => page.ping(), bounds.ping_ms);
  const close = () => {
    stop.abort();
    stopOnline();
    clearInterval(pinging);
    page.end();
  };
  return Object.assign(page, { close });
}

function connectToWorker(receive: (message: ToClient) => void, fail: () => void): HubConnection {
  const worker = new SharedWorker(new URL('./worker.ts', import.meta.url), {
    type: 'module',
    name: 'svc-streams',
  });
  const { port } = worker;
  const post = (message: FromPort) => port.postMessage(message);
  const silent = setTimeout(fail, bounds.worker_hello_ms);
  worker.onerror = fail;
  port.onmessage = ({ data }: MessageEvent<ToClient>) => {
    clearTimeout(silent);
    worker.onerror = null;
    receive(data);
  };
  const closed = Promise.withResolvers<void>();
  // Only secure contexts have locks and `randomUUID`.
  if (navigator.locks) {
    const name = `svc-page-${crypto.randomUUID()}`;
    void navigator.locks.request(name, () => {
      post({ type: 'lock', name });
      return closed.promise;
    });
  }
  return {
    post,
    close: () => {
      clearTimeout(silent);
      worker.onerror = null;
      post({ type: 'bye' });
      closed.resolve();
      port.close();
    },
  };
}

function connectInPage(receive: (message: ToClient) => void): HubConnection {
  const hub = new StreamHub({ url: location.origin });
  // Asynchronous, as messages from a worker are.
  const handle = hub.join((message) => queueMicrotask(() => receive(message)));
  return { post: (message) => handle.receive(message), close: () => handle.leave() };
}
