/** The worker that all pages of a browser share: the owner of their streams, and how it learns that a page is gone. */
import { bounds } from './bounds.ts';
import type { ToOwner } from './messages.ts';
import { Owner } from './owner.ts';

/** A page holds a lock for as long as it lives: whoever else gets it knows that the page is gone. */
export type FromPort = ToOwner | { type: 'lock'; name: string } | { type: 'bye' };

const owner = new Owner({ url: self.location.origin });

self.addEventListener('connect', (event) => {
  const port = (event as MessageEvent).ports[0]!;
  const seat = owner.join((message) => port.postMessage(message));
  let heard_at = Date.now();
  const listening = setInterval(() => {
    if (Date.now() - heard_at > bounds.quiet_ms) seat.receive({ type: 'visible', visible: false });
  }, bounds.ping_ms);
  const leave = () => {
    clearInterval(listening);
    seat.leave();
    port.close();
  };
  port.onmessage = ({ data }: MessageEvent<FromPort>) => {
    heard_at = Date.now();
    if (data.type === 'bye') leave();
    else if (data.type !== 'lock') seat.receive(data);
    else {
      clearInterval(listening);
      void navigator.locks.request(data.name, leave);
    }
  };
});
