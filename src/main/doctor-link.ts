/**
 * The checks of `svc doctor` for the link between plane and nodes: certificates and secrets of this side. Changes
 * nothing.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { limits } from '../base/limits.ts';
import { type DoctorCheck, failed, passed } from '../cli/context.ts';
import type { Config } from '../core/config.ts';
import { checkSecret } from '../link/trust/cert-dir.ts';
import { checkIdentity, daysLeft } from '../link/trust/pki.ts';

const NAME = 'certificates';

/** Returns no checks while the internal listener is disabled. */
export async function linkChecks(config: Config, now_ms: number): Promise<DoctorCheck[]> {
  if (!config.get('internal_grpc.enabled')) return [];
  const checks = secretChecks(config);
  if (config.get('internal_grpc.security.mode') === 'disabled') {
    checks.push(passed(NAME, 'none: internal_grpc.security.mode is "disabled"'));
  } else checks.push(await certificateCheck(config, now_ms));
  return checks;
}

function secretChecks(config: Config): DoctorCheck[] {
  const checks: DoctorCheck[] = [];
  const secret = config.get('internal_grpc.auth.shared_secret');
  const key = 'internal_grpc.auth.shared_secret';
  try {
    if (secret !== null) checkSecret(secret, key);
  } catch (error) {
    const hint = 'svc init creates one; use the same one on the control plane and every node';
    checks.push(failed('shared secret', (error as Error).message, hint));
  }
  const token = config.get('internal_grpc.bootstrap.token');
  const shortest = limits.bootstrap_token_chars_min;
  if (token !== null && token.length < shortest) {
    const detail = `internal_grpc.bootstrap.token must have at least ${shortest} characters`;
    checks.push(failed('bootstrap token', detail, 'svc nodes token prints one'));
  }
  return checks;
}

async function certificateCheck(config: Config, now_ms: number): Promise<DoctorCheck> {
  const folder = config.get('internal_grpc.security.cert_dir');
  const is_node = config.get('server.role') === 'node';
  try {
    const [ca, cert, key] = await Promise.all(
      ['ca.pem', 'cert.pem', 'key.pem'].map((file) => readIfPresent(join(folder, file))),
    );
    if (cert === null || cert === undefined || !key) return noCertificate(config, is_node);
    checkIdentity({ ca: ca ?? null, cert, key });
    const days = Math.floor(daysLeft(cert, now_ms));
    if (days >= 0) return passed(NAME, `${folder}, valid for ${days} more days`);
    const hint = is_node
      ? 'put a new token into internal_grpc.bootstrap.token (svc nodes token) and start svc again, or renew your own files'
      : 'start svc, which renews its own certificates; renew your own files yourself';
    return failed(NAME, `${folder}: cert.pem has expired`, hint);
  } catch (error) {
    return failed(NAME, `${folder}: ${(error as Error).message}`);
  }
}

function noCertificate(config: Config, is_node: boolean): DoctorCheck {
  if (!is_node) return passed(NAME, 'none yet (created at the first start)');
  if (config.get('internal_grpc.bootstrap.token') !== null) {
    return passed(NAME, 'none yet: this node is waiting for its control plane');
  }
  const hint = 'run svc nodes token on the control plane and put it into internal_grpc.bootstrap.token';
  return failed(NAME, 'none, and no bootstrap token to get one with', hint);
}

async function readIfPresent(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
