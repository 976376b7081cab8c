/** The certificates and tokens with which the plane and its nodes authenticate each other. */
import { parseAddress } from '../core/config.ts';
import { invalid } from '../core/problem.ts';
import type { Core } from '../features/feature.ts';
import { PlaneTrust } from '../link/trust/plane-trust.ts';
import { listenNames } from './actor-address.ts';
import type { Closing } from './closing.ts';

/** Null while the internal listener is disabled. Throws a Problem if the configuration is not usable. */
export async function openTrust(
  { config, plane_id, clock, log }: Core,
  opened: Closing,
): Promise<PlaneTrust | null> {
  if (!config.get('internal_grpc.enabled')) return null;
  const mode = config.get('internal_grpc.security.mode');
  if (mode === 'disabled')
    log.warn('internal_grpc.security.mode is "disabled": links to nodes are not encrypted');
  const trust = await PlaneTrust.open({
    cert_dir: config.get('internal_grpc.security.cert_dir'),
    plane_id,
    mode,
    shared_secret: config.get('internal_grpc.auth.shared_secret'),
    issuer: config.get('internal_grpc.auth.issuer'),
    audience: config.get('internal_grpc.auth.audience'),
    names: listenNames(parseAddress(config.get('internal_grpc.listen'))!.host),
    clock,
    log,
  }).catch((error: Error) => {
    throw invalid(error.message, 'invalid_config');
  });
  opened.push(() => trust.close());
  return trust;
}
