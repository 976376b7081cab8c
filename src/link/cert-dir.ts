/**
 * The folder of certificates and secrets (`internal_grpc.security.cert_dir`), closed to other users. Every file is
 * replaced whole; a look tells whether anybody changed one, and ends in the same reading as at the start.
 */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { makePrivateFolder, writeFileAtomic } from '../base/files.ts';
import { limits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import type { TokenSettings } from './tokens.ts';

const files = ['ca.pem', 'ca-key.pem', 'cert.pem', 'key.pem', 'auth_secret.txt', 'joined.json'] as const;
export type CertFile = (typeof files)[number];

const secretSchema = z.object({
  shared_secret: z.string().optional(),
  issuer: z.string().optional(),
  audience: z.string().optional(),
});

export class CertDir {
  readonly path: string;
  #looking: NodeJS.Timeout | undefined;

  private constructor(path: string) {
    this.path = path;
  }

  static async open(path: string): Promise<CertDir> {
    try {
      await makePrivateFolder(path);
    } catch (error) {
      // A folder of the operator's, mounted or owned so that we cannot change it, may still be read.
      const { code = '' } = error as NodeJS.ErrnoException;
      if (!['EPERM', 'EACCES', 'EROFS'].includes(code)) throw error;
    }
    return new CertDir(path);
  }

  /** The text of a file, or null where there is none. */
  async read(file: CertFile): Promise<string | null> {
    try {
      return await readFile(join(this.path, file), 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  async write(file: CertFile, text: string): Promise<void> {
    await writeFileAtomic(join(this.path, file), text);
  }

  /** The file's JSON in the form of `schema`, null where there is none; throws when it has another form. */
  async readJson<T>(file: CertFile, schema: z.ZodType<T>): Promise<T | null> {
    const text = await this.read(file);
    if (text === null) return null;
    try {
      return schema.parse(JSON.parse(text));
    } catch {
      throw new Error(`${file} is damaged`);
    }
  }

  async readSecret(): Promise<Partial<TokenSettings>> {
    const found = await this.readJson('auth_secret.txt', secretSchema);
    if (typeof found?.shared_secret === 'string') checkSecret(found.shared_secret, 'auth_secret.txt');
    return found ?? {};
  }

  async writeSecret(settings: Partial<TokenSettings>): Promise<void> {
    await this.write('auth_secret.txt', `${JSON.stringify(settings)}\n`);
  }

  /** Changes when a file does. */
  async look(): Promise<string> {
    const seen = await Promise.all(
      files.map(async (file) => {
        const found = await stat(join(this.path, file), { bigint: true }).catch(() => null);
        return found && `${found.ino} ${found.size} ${found.mtimeNs}`;
      }),
    );
    return JSON.stringify(seen);
  }

  /** Calls `look` every few seconds until `close`. */
  watch(look: () => Promise<void>): void {
    this.#looking = setInterval(() => void look(), limits.certificate_look_ms);
    this.#looking.unref();
  }

  close(): void {
    clearInterval(this.#looking);
  }
}

/** Throws when the secret is short enough to be found by trying. */
export function checkSecret(secret: string, where: string): void {
  if (Buffer.byteLength(secret) >= limits.shared_secret_bytes_min) return;
  throw new Error(`${where} must have at least ${limits.shared_secret_bytes_min} bytes`);
}

/** Certificates of the operator are not ours to renew: the log says when they run out. */
export function warnOfExpiry(log: Logger, days: number): void {
  if (days >= limits.certificate_warn_days) return;
  const message = days < 0 ? 'cert.pem has expired' : 'cert.pem expires soon';
  log.warn({ days: Math.floor(days) }, `${message}: put a new one into cert_dir`);
}
