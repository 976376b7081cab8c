/** The plane's HTTP listener. */
import { type Config, parseAddress } from '../core/config.ts';
import type { Core } from '../features/feature.ts';
import type { FeatureSet } from '../features/feature-set.ts';
import type { Tokens } from '../features/tokens/service.ts';
import type { Listener, ListenerOptions } from '../server/listener.ts';
import { WEB_FOLDER } from '../server/pages.ts';
import type { Peers } from '../server/peers.ts';
import { requestRate } from '../server/rate.ts';
import { type HttpServer, openHttp } from '../server/server.ts';
import type { Closing } from './closing.ts';
import { limits } from './limits.ts';
import { readTls } from './tls.ts';

export interface PlaneHttp {
  tokens: Tokens;
  /** The public listener, if it is open already. */
  listener: Listener | null;
  /** Whether the plane is ready, for `/readyz`. */
  ready(): boolean;
}

/** The address of the public listener. Throws a Problem if the files of its certificate cannot be used. */
export async function publicAddress(config: Config): Promise<ListenerOptions> {
  const address = parseAddress(config.get('server.listen'))!;
  return { ...address, tls: await readTls(config), public_origin: config.get('web.rp_origin') };
}

/** Throws if the address cannot be bound. */
export async function openPlaneHttp(
  core: Core,
  features: FeatureSet,
  { tokens, listener, ready }: PlaneHttp,
): Promise<HttpServer> {
  const { config, settings, store, idempotency, metrics, log } = core;
  return openHttp({
    // An open listener has its certificate. The files may be changing at this moment.
    ...(listener === null ? await publicAddress(config) : { ...listener.options, listener }),
    behind_proxy: config.get('server.behind_proxy'),
    handlers: features.routes(),
    resources: features.resources(),
    authenticate: (token, ip) => tokens.authenticate(token, ip),
    idempotency,
    rate: () => requestRate(settings),
    body_bytes_max: () => settings.get('limits.body_bytes_max'),
    page_items_default: () => settings.get('limits.page_items_default'),
    web: WEB_FOLDER,
    ready,
    ...(store.server !== null && { database_up: store.server.up }),
    metrics,
    metrics_open: () => settings.get('metrics.open'),
    log,
  });
}

interface Listeners {
  http: HttpServer;
  /** Null: no other planes forward requests to this one. */
  peers: Peers | null;
}

/**
 * Drains the listeners when the plane closes, both at the same time. Requests that wait for an agent are answered in time; their
 * intents are kept.
 */
export function drainOnClose(
  { http, peers }: Listeners,
  { outbox }: Pick<Core, 'outbox'>,
  opened: Closing,
): void {
  opened.push(async () => {
    const impatient = setTimeout(() => outbox.close(), limits.requests_finish_ms);
    await Promise.all([http.drain(), peers?.close()]);
    clearTimeout(impatient);
  });
}
