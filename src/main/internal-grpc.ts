/**
 * What a plane needs for remote nodes and for the calls of agents: the certificates and tokens with which it and its nodes
 * authenticate each other, and the listener. Loaded only when `internal_grpc` is enabled.
 */
import { parseAddress } from '../core/config.ts';
import { invalid } from '../core/problem.ts';
import { Actors } from '../features/actors/service.ts';
import type { Core } from '../features/feature.ts';
import type { FeatureSet } from '../features/feature-set.ts';
import { PlaneTrust } from '../link/trust/plane-trust.ts';
import { listenNames } from './actor-address.ts';
import { openActors } from './actor-listener.ts';
import type { Closing } from './closing.ts';
import type { OpenedCore } from './core.ts';
import { registerCertificateMetrics } from './machine-metrics.ts';

export interface InternalGrpc {
  trust: PlaneTrust;
  actors: Actors;
  /**
   * Starts listening for the calls of agents of this machine. Call it when all features are added. Throws if the address cannot be
   * bound.
   */
  listen(features: FeatureSet): Promise<void>;
}

/** Throws a Problem if the configuration is not usable. */
export async function openInternalGrpc(
  { core, main_node, session_tokens, cluster }: OpenedCore,
  opened: Closing,
): Promise<InternalGrpc> {
  const trust = await (cluster?.shareTrust(core.store, core.plane_id) ?? openTrust(core, opened));
  registerCertificateMetrics(core.metrics, trust);
  const actors = new Actors({ ...core, session_tokens, settings: () => trust.tokenSettings() });
  const listen = async (features: FeatureSet) => {
    actors.open(features.actorMethods());
    // Agents on nodes call through their node.
    if (!core.config.get('server.local_node')) return;
    await openActors({ ...core, trust, actors, files: main_node.actor_files }, opened);
  };
  return { trust, actors, listen };
}

async function openTrust(core: Core, opened: Closing): Promise<PlaneTrust> {
  const trust = await openPlaneTrust(core);
  opened.push(() => trust.close());
  return trust;
}

/** The caller closes it. Throws a Problem if the files in `cert_dir` cannot be used. */
export async function openPlaneTrust({
  config,
  plane_id,
  clock,
  log,
}: Pick<Core, 'config' | 'plane_id' | 'clock' | 'log'>): Promise<PlaneTrust> {
  const mode = config.get('internal_grpc.security.mode');
  if (mode === 'disabled')
    log.warn('internal_grpc.security.mode is "disabled": links to nodes are not encrypted');
  return PlaneTrust.open({
    cert_dir: config.get('internal_grpc.security.cert_dir'),
    plane_id,
    mode,
    shared_secret: config.get('internal_grpc.auth.shared_secret'),
    issuer: config.get('internal_grpc.auth.issuer'),
    audience: config.get('internal_grpc.auth.audience'),
    names: config.get('server.local_node')
      ? listenNames(parseAddress(config.get('internal_grpc.listen'))!.host)
      : [],
    clock,
    log,
  }).catch((error: Error) => {
    throw invalid(error.message, 'invalid_config');
  });
}
