/** The certificate of the HTTP listener. */
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Config } from '../core/config.ts';
import { invalid } from '../core/problem.ts';

/** PEM texts; null: plain HTTP. Throws a Problem if the files cannot be read or do not fit together. */
export async function readTls(config: Config): Promise<{ cert: string; key: string } | null> {
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
