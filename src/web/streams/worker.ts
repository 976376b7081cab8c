/** The worker that all pages of a browser share: it runs the stream hub and detects closed pages. */
import { bounds } from './bounds.ts';
import { StreamHub } from './hub.ts';
import type { ToHub } from './messages.ts';

/** A page holds a lock while it is open. When the worker gets that lock, the page has closed. */
export type FromPort = ToHub | { type: 'lock'; name: string } | { type: 'bye' };

const hub = new StreamHub({ url: self.location.origin });

self.addEventListener('connect', (event) => {
  const port = (event as MessageEvent).ports[0]!;
  const handle = hub.join((message) => port.postMessage(message));
  let heard_at = Date.now();
  const checking = setInterval(() => {
    if (Date.now() - heard_at > bounds.quiet_ms) handle.receive({ type: 'visible', visible: false });
  }, bounds.ping_ms);
  const leave = () => {
    clearInterval(checking);
    handle.leave();
    port.close();
  };
  port.onmessage = ({ data }: MessageEvent<FromPort>) => {
    heard_at = Date.now();
    if (data.type === 'bye') leave();
    else if (data.type !== 'lock') handle.receive(data);
    else {
      clearInterval(checking);
      void navigator.locks.request(data.name, leave);
    }
  };
});
