/** The certificate of the public listener: its files, which are read again when they change. */
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Logger } from '../base/log.ts';
import type { Config } from '../core/config.ts';
import { invalid } from '../core/problem.ts';
import type { Certificate, Listener } from '../server/listener.ts';
import type { Closing } from './closing.ts';
import { limits } from './limits.ts';

/** Null: plain HTTP. Throws a Problem if the files cannot be read or do not fit together. */
export async function readTls(config: Config): Promise<Certificate | null> {
  const read = async (name: 'server.tls.cert' | 'server.tls.key') => {
    const path = config.get(name);
    if (path === null) return null;
    return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      throw invalid(`${name} ${path} cannot be read: ${error.code ?? error.message}`, 'invalid_config');
    });
  };
  const [cert, key] = [await read('server.tls.cert'), await read('server.tls.key')];
  if (cert === null || key === null) return null;
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    const reason = (error as Error).message;
    throw invalid(`server.tls.cert and server.tls.key cannot be used: ${reason}`, 'invalid_config');
  }
  return { cert, key };
}

export interface CertificateFiles {
  config: Config;
  listener: Listener;
  log: Logger;
  /** Registers what a reload of the service does (SIGHUP). */
  onReload(reload: () => void): void;
  /** Called with the certificate in use, PEM without its chain: at once, and after each change. */
  certified(certificate: string): void;
}

/**
 * Checks the files of the listener's certificate every `limits.public_certificate_check_ms`, and at a reload. New connections use
 * a changed certificate. Files that cannot be used are logged once, and the old certificate stays in use. Does nothing without TLS.
 */
export function followCertificate(
  { config, listener, log, onReload, certified }: CertificateFiles,
  opened: Closing,
): void {
  let used = listener.options.tls;
  if (used === null) return;
  const announce = ({ cert }: Certificate) => certified(new X509Certificate(cert).toString());
  announce(used);
  let failure: string | null = null;
  const check = async () => {
    try {
      const found = await readTls(config);
      failure = null;
      if (found === null || (found.cert === used?.cert && found.key === used.key)) return;
      listener.setCertificate(found);
      used = found;
      announce(found);
      log.info('certificate of the public listener reloaded');
    } catch (error) {
      const { message } = error as Error;
      if (message === failure) return;
      failure = message;
      log.error({ err: error }, 'the changed certificate cannot be used; keeping the old one');
    }
  };
  const timer = setInterval(() => void check(), limits.public_certificate_check_ms);
  timer.unref();
  opened.push(() => clearInterval(timer));
  onReload(() => void check());
}
