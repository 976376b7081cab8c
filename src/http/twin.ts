/**
 * The other loopback address. Browsers take `localhost` for both `127.0.0.1` and `::1`, so whoever listened at the one that we
 * leave would be taken for us, and would be told the first password.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';

export interface Twin {
  /** Another program has the other address with our port. */
  taken: boolean;
  close(): Promise<void>;
}

const others: Record<string, string> = { '127.0.0.1': '::1', '::1': '127.0.0.1' };

/** Hands what comes to the other address, with the same port, to the server that listens at the first. */
export async function listenToTwin(server: Server, { address, port }: AddressInfo): Promise<Twin> {
  const host = others[address];
  if (host === undefined) return { taken: false, close: async () => {} };
  const twin = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    server.emit('connection', socket),
  );
  try {
    await once(twin.listen({ host, port, ipv6Only: true }), 'listening');
  } catch (error) {
    // A machine without IPv6 has no other one.
    const { code } = error as NodeJS.ErrnoException;
    return { taken: code === 'EADDRINUSE' || code === 'EACCES', close: async () => {} };
  }
  return {
    taken: false,
    close: async () => {
      const closed = once(twin, 'close');
      twin.close();
      await closed;
    },
  };
}
