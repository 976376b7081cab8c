/**
 * A plane that shares its database with others. It binds its addresses at once, so that one that cannot be bound is noticed
 * before a takeover. While another plane is active, it stands by and forwards requests to that one; when it becomes
 * active itself, it serves them with the same listeners, and accepts the requests that the others forward.
 */
import { X509Certificate } from 'node:crypto';
import { hostname } from 'node:os';
import type { PeerCertificate } from 'node:tls';
import type { Clock } from '../base/clock.ts';
import { newId } from '../base/ids.ts';
import type { Logger } from '../base/log.ts';
import { version } from '../base/version.ts';
import { type Config, parseAddress } from '../core/config.ts';
import { Problem } from '../core/problem.ts';
import { loadLinks } from '../features/nodes/index.ts';
import type { PlaneTrust } from '../link/trust/plane-trust.ts';
import { Forwarder } from '../server/forwarding.ts';
import { type Listener, openListener } from '../server/listener.ts';
import { openPeers, type Peers } from '../server/peers.ts';
import type { HttpServer } from '../server/server.ts';
import { Member, type StandbyView } from '../store/postgres/member.ts';
import type { Store } from '../store/store.ts';
import { listTrustFiles, type TrustFile } from '../store/trust-files.ts';
import type { Closing } from './closing.ts';
import { dataDirFingerprint } from './database.ts';
import { publicAddress } from './http.ts';
import { openPlaneTrust } from './internal-grpc.ts';
import { followCertificate } from './tls.ts';
import { TrustFiles } from './trust-files.ts';

export interface ClusterOptions {
  config: Config;
  data_dir: string;
  /** Of the data directory. */
  key: Uint8Array;
  clock: Clock;
  log: Logger;
  /** Ends the wait of a plane that stands by. */
  signal: AbortSignal;
  /** Called once, when this plane stands by, with the URL of its listener. */
  onStandby(url: string): void;
  /** Registers what a reload of the service does (SIGHUP). */
  onReload(reload: () => void): void;
  /** Called with the certificate of the public listener, PEM: at once, and after each change. */
  certified(certificate: string): void;
}

export class Cluster {
  readonly listener: Listener;
  /** How the other planes see this one. */
  readonly member: Member;
  readonly #options: ClusterOptions;
  readonly #peers: Peers;
  readonly #files: TrustFiles;
  readonly #forwarder: Forwarder;
  readonly #fingerprint: string;
  readonly #closing = new AbortController();
  #trust: PlaneTrust | null = null;
  #active: string | null = null;
  #stands_by = false;

  private constructor(options: ClusterOptions, listener: Listener, peers: Peers) {
    const { config, data_dir, key, log, signal } = options;
    this.#options = options;
    this.listener = listener;
    this.#peers = peers;
    this.#fingerprint = dataDirFingerprint(key);
    this.#files = new TrustFiles({ folder: config.get('internal_grpc.security.cert_dir'), key, log });
    this.member = new Member({
      ...{ id: newId('pln'), name: config.get('cluster.name') ?? hostname(), version, signal },
      onStandby: (view) => this.#standBy(view, data_dir),
    });
    this.#forwarder = new Forwarder({
      listener,
      behind_proxy: config.get('server.behind_proxy'),
      // There is no target without trust, and no plane in a cluster whose trust has no identity.
      identity: () => this.#trust!.identity()!,
      isPlane: (certificate) => isPlane(this.#trust!, certificate),
      log,
    });
    listener.serve(this.#forwarder.handle);
  }

  /** Opens the public listener, and the one for other planes. Throws if an address cannot be bound. */
  static async open(options: ClusterOptions, opened: Closing): Promise<Cluster> {
    const { config } = options;
    const listener = await openListener(await publicAddress(config));
    opened.push(() => listener.close());
    followCertificate({ ...options, listener }, opened);
    const peers = await openPeers({
      ...parseAddress(config.get('cluster.listen')!)!,
      identity: null,
      isPlane: (certificate) => cluster.#trust !== null && isPlane(cluster.#trust, certificate),
    });
    opened.push(() => peers.close());
    const cluster = new Cluster(options, listener, peers);
    opened.push(() => cluster.#closing.abort());
    opened.push(() => cluster.#trust?.close());
    opened.push(() => cluster.#forwarder.drain());
    return cluster;
  }

  /**
   * Opens the certificates that all planes share, once this plane is active, and stores what changes. Throws a Problem if
   * they cannot be used.
   */
  async shareTrust(store: Store, plane_id: string): Promise<PlaneTrust> {
    const trust = await this.#takeFiles(await store.read(listTrustFiles), plane_id);
    trust.onChange(() => void this.#files.storeEventually(store, this.#closing.signal));
    await this.#files.store(store);
    return trust;
  }

  /**
   * Serves requests from now on, also those that other planes forward. Call it after `shareTrust`. Returns the listener for other
   * planes, to drain it with the public one.
   */
  activate(http: HttpServer): Peers {
    const { config, log } = this.#options;
    const peers = this.#peers;
    const trust = this.#trust!;
    peers.serve(http.handler);
    // Not before: other planes hold a request that has not reached this one, but not one that it refused.
    peers.setIdentity(trust.identity()!);
    trust.onChange(() => peers.setIdentity(trust.identity()!));
    this.#forwarder.takeOver(http.handler);
    const { family, address, port } = peers.address;
    const listening = `${family === 'IPv6' ? `[${address}]` : address}:${port}`;
    this.member.announce(config.get('cluster.advertise') ?? listening);
    if (this.#stands_by) log.info('this control plane is active now');
    return peers;
  }

  async #standBy(view: StandbyView | null, data_dir: string): Promise<void> {
    const { log, onStandby } = this.#options;
    if (!this.#stands_by) {
      this.#stands_by = true;
      log.info({ url: this.listener.url }, 'another control plane is active: standing by');
      onStandby(this.listener.url);
      await preload();
    }
    if (view === null) return;
    if (view.data_dir !== this.#fingerprint) {
      throw new Problem(
        'conflict',
        'wrong_secret_key',
        `${data_dir}/secret.key is not that of the other control planes: copy it from the data directory of one of them`,
      );
    }
    if (view.trust_files.length > 0) await this.#takeFiles(view.trust_files, view.plane_id);
    const { address, name } = view.active;
    this.#forwarder.setTarget(this.#trust === null || address === null ? null : parseAddress(address));
    if (address !== null && address !== this.#active)
      log.info({ name, address }, 'forwarding requests to the active control plane');
    this.#active = address;
  }

  async #takeFiles(files: readonly TrustFile[], plane_id: string): Promise<PlaneTrust> {
    const { config, clock, log } = this.#options;
    const changed = await this.#files.take(files);
    if (this.#trust !== null) {
      if (changed) await this.#trust.refresh();
      return this.#trust;
    }
    const trust = await openPlaneTrust({ config, plane_id, clock, log });
    this.#trust = trust;
    return trust;
  }
}

/** Loads what a takeover would otherwise wait for: the links to nodes, and what Node.js loads for the first `Headers`. */
async function preload(): Promise<void> {
  await loadLinks();
  new Headers();
}

/** All planes of a cluster have the same key. A node's certificate is for another one. */
function isPlane(trust: PlaneTrust, { raw }: PeerCertificate): boolean {
  return trust.isOwnKey(new X509Certificate(raw));
}
