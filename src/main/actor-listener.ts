/** The plane's listener for calls of agents. */
import type { X509Certificate } from 'node:crypto';
import type { Logger } from '../base/log.ts';
import { type Config, parseAddress } from '../core/config.ts';
import { MAIN_NODE } from '../core/node.ts';
import type { Actors } from '../features/actors/service.ts';
import type { PlaneTrust } from '../link/trust/plane-trust.ts';
import { paramsFromWire } from '../link/wire.ts';
import type { ActorFiles } from '../node/sessions/actor-files.ts';
import { openActorListener } from '../server/actors/listener.ts';
import type { ActorBackend } from '../server/actors/service.ts';
import { announceActors } from './actor-address.ts';
import type { Closing } from './closing.ts';

export interface ActorListenerOptions {
  config: Config;
  trust: PlaneTrust;
  actors: Actors;
  /** Null: agents of this machine do not get the address. */
  files: ActorFiles | null;
  log: Logger;
}

/** Throws if the address cannot be bound. */
export async function openActors(options: ActorListenerOptions, opened: Closing): Promise<void> {
  const { config, trust, actors, files, log } = options;
  const address = parseAddress(config.get('internal_grpc.listen'))!;
  const certificate = trust.identity();
  const call: ActorBackend['call'] = async (request) =>
    actors.call({ ...request, params: paramsFromWire(request.params), node_id: MAIN_NODE });
  const isOperator = (peer: X509Certificate) => trust.isOwnKey(peer);
  const isGenuine = (token: string) => actors.isGenuine(token);
  const operators = trust.mode === 'mtls' ? { isOperator } : {};
  const listener = await openActorListener({ ...address, certificate, call, isGenuine, log, ...operators });
  opened.push(() => listener.close());
  const announce = () =>
    announceActors({ files, ...address, port: listener.port, identity: trust.identity(), log });
  await announce();
  trust.onChange(() => {
    const renewed = trust.identity();
    if (renewed) listener.certify(renewed);
    void announce();
  });
}
