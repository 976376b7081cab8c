/** How agents of this machine reach a listener of the internal surface: said to them anew whenever it changes. */
import type { Logger } from '../base/log.ts';
import { nearAddress } from '../contract/config.ts';
import { nameToCheck } from '../link/pki.ts';
import type { ActorFiles } from '../runtime/actor-files.ts';

/** What a listener on `host` may be dialled by, beside the names of loopback. */
export function listenNames(host: string): string[] {
  return nearAddress({ host, port: 0 }).host === host ? [host] : [];
}

/** Never throws: without it agents cannot call the plane, and everything else goes on. */
export async function announceActors(options: {
  files: ActorFiles | null;
  host: string;
  port: number;
  /** Null: no TLS. */
  identity: { ca: string; cert: string } | null;
  log: Logger;
}): Promise<void> {
  const { files, host, port, identity, log } = options;
  const near = nearAddress({ host, port }).host;
  const authority = `${near.includes(':') ? `[${near}]` : near}:${port}`;
  const name = identity && nameToCheck(identity.cert, near);
  try {
    await files?.announce({
      endpoint: `${identity ? 'https' : 'http'}://${authority}`,
      server_name: name === near ? null : name,
      ca: identity?.ca ?? null,
    });
  } catch (error) {
    log.error({ err: error }, 'agents are not told where the actor surface is');
  }
}
