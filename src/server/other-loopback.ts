/**
 * Also listens on the other loopback address. Browsers resolve `localhost` to both `127.0.0.1` and `::1`. If another program
 * listened on the address that svc left free, browsers could mistake it for svc and send it the first password.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';

export interface OtherLoopback {
  /** Another program is listening on the other address with the same port. */
  taken: boolean;
  close(): Promise<void>;
}

const others: Record<string, string> = { '127.0.0.1': '::1', '::1': '127.0.0.1' };

/**
 * Listens on the other loopback address with the same port, and passes connections to the given server. Does nothing if
 * `host` is not a loopback address. Never rejects.
 */
export async function listenOnOtherLoopback(
  server: Server,
  { address, port }: AddressInfo,
): Promise<OtherLoopback> {
  const host = others[address];
  if (host === undefined) return { taken: false, close: async () => {} };
  const other = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    server.emit('connection', socket),
  );
  try {
    await once(other.listen({ host, port, ipv6Only: true }), 'listening');
  } catch (error) {
    // A machine without IPv6 has no other loopback address.
    const { code } = error as NodeJS.ErrnoException;
    return { taken: code === 'EADDRINUSE' || code === 'EACCES', close: async () => {} };
  }
  return {
    taken: false,
    close: async () => {
      const closed = once(other, 'close');
      other.close();
      await closed;
    },
  };
}
