/** HTTP/2 sessions whose peer may have disappeared without closing them. */
import type { ServerHttp2Session } from 'node:http2';

/** Closes the session after `idle_ms` (milliseconds) without traffic. Pings are traffic. */
export function closeWhenIdle(session: ServerHttp2Session, idle_ms: number): void {
  session.setTimeout(idle_ms, () => session.destroy());
  // Node takes a ping as activity only if somebody listens for it.
  session.on('ping', () => {});
}
