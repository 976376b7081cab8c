/**
 * Interprets the files in a node's `cert_dir`: determines whether the node is alone, joined or uses the operator's
 * certificates, and returns its certificate, authority and token settings.
 */
import { createHash, constants as openssl, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext, type TlsOptions } from 'node:tls';
import { z } from 'zod';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import { configKeys } from '../../core/config.ts';
import { type CertDir, warnOfExpiry } from './cert-dir.ts';
import { checkIdentity, checkOwnKey, daysLeft, isSignedBy, makeKey, makeSelfSigned } from './pki.ts';
import type { TokenSettings } from './tokens.ts';

export interface NodeTrustOptions {
  cert_dir: string;
  node_id: string;
  /** Null if not configured. The mode is then `mtls` after a join, and `tls` with certificates of the operator. */
  mode: 'tls' | 'mtls' | 'disabled' | null;
  /** Null if not configured. The values from a join, or else the defaults, then apply. */
  shared_secret: string | null;
  issuer: string | null;
  audience: string | null;
  bootstrap_token: string | null;
  /** Whether ActorService is served here. Agents of this machine, which have no certificate, may call it. */
  actors?: boolean;
  /**
   * Called in a join when only the joined plane is trusted, and before the token counts as used. If it throws, the join
   * fails and can be repeated.
   */
  onJoin?(plane_id: string): Promise<void>;
  clock: Clock;
  log: Logger;
}

export type TrustState = 'alone' | 'joined' | 'operator';

export interface Trusted {
  state: TrustState;
  /**
   * PEM. In state `alone`, this is the node's own certificate, so that it trusts no other authority, not even the
   * public ones that Node.js trusts by default.
   */
  ca: string;
  cert: string;
  key: string;
  context: SecureContext;
  settings: TokenSettings | null;
  joined: Joined | null;
}

export const joinedSchema = z.object({
  plane_id: z.string(),
  joined_at: z.string(),
  /** SHA-256 of every authority received in a join. Any other authority in ca.pem is the operator's. */
  authorities: z.array(z.string()),
  /** SHA-256 of every used bootstrap token. */
  spent: z.array(z.string()),
});
export type Joined = z.infer<typeof joinedSchema>;

export const TLS_BASE = {
  minVersion: 'TLSv1.3',
  // A resumed session presents no certificate, and could outlive the certificate with which the first one was accepted.
  secureOptions: openssl.SSL_OP_NO_TICKET,
} as const satisfies TlsOptions;

/**
 * Reads `cert_dir`. Creates the key, and a self-signed certificate in state `alone`. Throws an Error for the operator.
 */
export async function loadTrust(options: NodeTrustOptions, dir: CertDir): Promise<Trusted> {
  const [ca, cert, old_key, joined, settings] = await Promise.all([
    dir.read('ca.pem'),
    dir.read('cert.pem'),
    dir.read('key.pem'),
    dir.readJson('joined.json', joinedSchema),
    settingsOf(options, dir),
  ]);
  if (options.mode === 'disabled') {
    return {
      state: 'alone',
      ca: '',
      cert: '',
      key: '',
      context: createSecureContext(),
      settings,
      joined,
    };
  }
  const by_join = ca !== null && joined?.authorities.includes(sha256(ca)) === true;
  if (cert !== null && old_key !== null) {
    checkIdentity({ ca, cert, key: old_key });
    if (by_join && isSignedBy(new X509Certificate(cert), new X509Certificate(ca))) {
      return trustWith('joined', { ca, cert, key: old_key }, { settings, joined });
    }
    if (!by_join) return operatorTrust(options, { ca, cert, key: old_key }, { settings, joined });
  } else if (cert !== null) throw new Error('cert_dir has cert.pem, but no key.pem');
  return standaloneTrust(options, dir, old_key, { settings, joined });
}

function operatorTrust(
  { mode, log, clock }: NodeTrustOptions,
  { ca, cert, key }: { ca: string | null; cert: string; key: string },
  rest: Pick<Trusted, 'settings' | 'joined'>,
): Trusted {
  if (ca === null && mode === 'mtls') {
    throw new Error('internal_grpc.security.mode "mtls" needs ca.pem in cert_dir');
  }
  warnOfExpiry(log, daysLeft(cert, clock.now()));
  return trustWith('operator', { ca: ca ?? cert, cert, key }, rest);
}

async function standaloneTrust(
  { node_id, clock }: NodeTrustOptions,
  dir: CertDir,
  old_key: string | null,
  rest: Pick<Trusted, 'settings' | 'joined'>,
): Promise<Trusted> {
  const key = old_key ?? (await makeKey());
  if (old_key === null) await dir.write('key.pem', key);
  else checkOwnKey(key, 'key.pem');
  const cert = await makeSelfSigned(key, `svc node ${node_id}`, clock.now());
  return trustWith('alone', { ca: cert, cert, key }, rest);
}

/**
 * The configuration takes precedence over values from a join, and those over the defaults. Null if there is no secret.
 */
async function settingsOf(options: NodeTrustOptions, dir: CertDir): Promise<TokenSettings | null> {
  const found = await dir.readSecret();
  const shared_secret = options.shared_secret ?? found.shared_secret;
  if (shared_secret === undefined) return null;
  const defaults = (key: 'issuer' | 'audience') => configKeys[`internal_grpc.auth.${key}`].default;
  return {
    shared_secret,
    issuer: options.issuer ?? found.issuer ?? defaults('issuer'),
    audience: options.audience ?? found.audience ?? defaults('audience'),
  };
}

function trustWith(
  state: TrustState,
  identity: { ca: string; cert: string; key: string },
  rest: Pick<Trusted, 'settings' | 'joined'>,
): Trusted {
  return { state, ...identity, context: createSecureContext({ ...TLS_BASE, ...identity }), ...rest };
}

/** Returns hexadecimal digits. */
export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
