/** Publishes the address of the actor listener in a file that the agents of this machine read. */
import type { Logger } from '../base/log.ts';
import { localAddress } from '../core/config.ts';
import { nameToCheck } from '../link/trust/pki.ts';
import type { ActorFiles } from '../node/sessions/actor-files.ts';

/** The names under which agents can connect to a listener on `host`, besides loopback. */
export function listenNames(host: string): string[] {
  return localAddress({ host, port: 0 }).host === host ? [host] : [];
}

/** Never throws. Without the address, agents cannot call the plane, but everything else works. */
export async function announceActors(options: {
  files: ActorFiles | null;
  host: string;
  port: number;
  /** Null: no TLS. */
  identity: { ca: string; cert: string } | null;
  log: Logger;
}): Promise<void> {
  const { files, host, port, identity, log } = options;
  const near = localAddress({ host, port }).host;
  const authority = `${near.includes(':') ? `[${near}]` : near}:${port}`;
  const name = identity && nameToCheck(identity.cert, near);
  try {
    await files?.announce({
      endpoint: `${identity ? 'https' : 'http'}://${authority}`,
      server_name: name === near ? null : name,
      ca: identity?.ca ?? null,
    });
  } catch (error) {
    log.error({ err: error }, 'cannot publish the address of the actor listener to agents');
  }
}
