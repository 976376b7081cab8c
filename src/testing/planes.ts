/** Certificates of planes and nodes, and a plane's listener for other planes, for tests of forwarding. */
import { makeCa, makeKey, makeLeaf, nodeUri, planeUri, svcUris } from '../link/trust/pki.ts';
import {
  type IsPlane,
  openPeers,
  type Peers,
  type PeersOptions,
  type PlaneIdentity,
} from '../server/peers.ts';

export const isPlane: IsPlane = ({ raw }) => svcUris(raw).some((uri) => uri.startsWith(planeUri('')));

/** An authority that issues identities. */
export class TestAuthority {
  readonly #ca: { cert: string; key: string };

  private constructor(ca: { cert: string; key: string }) {
    this.#ca = ca;
  }

  static async create(): Promise<TestAuthority> {
    const key = await makeKey();
    return new TestAuthority({ cert: await makeCa(key, Date.now()), key });
  }

  plane(id: string): Promise<PlaneIdentity> {
    return this.#issue(planeUri(id));
  }

  node(id: string): Promise<PlaneIdentity> {
    return this.#issue(nodeUri(id));
  }

  async #issue(uri: string): Promise<PlaneIdentity> {
    const key = await makeKey();
    const cert = await makeLeaf(this.#ca, key, {
      title: uri,
      uri,
      usages: ['client', 'server'],
      now_ms: Date.now(),
      lifetime_ms: 3_600_000,
    });
    return { ca: this.#ca.cert, cert, key };
  }
}

export function openTestPeers(
  identity: PlaneIdentity | null,
  options: Partial<PeersOptions> = {},
): Promise<Peers> {
  return openPeers({ host: '127.0.0.1', port: 0, identity, isPlane, timeouts: { cut_ms: 100 }, ...options });
}
