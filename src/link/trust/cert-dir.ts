/**
 * The folder of certificates and secrets (`internal_grpc.security.cert_dir`), not readable by other users. Files are
 * always replaced as a whole. A periodic check detects changed files, which are then read in the same way as at the
 * start.
 */
import { readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { makePrivateFolder, writeFileAtomic } from '../../base/files.ts';
import type { Logger } from '../../base/log.ts';
import { limits } from '../limits.ts';
import type { TokenSettings } from './tokens.ts';

const files = [
  'ca.pem',
  'ca-key.pem',
  'cert.pem',
  'key.pem',
  'auth_secret.txt',
  'auth.json',
  'joined.json',
] as const;
export type CertFile = (typeof files)[number];

const claims = z.object({ issuer: z.string().optional(), audience: z.string().optional() });
/** The content of `auth_secret.txt` in the format of svc 0.1. */
const earlierFormat = claims.extend({ shared_secret: z.string().optional() });

export class CertDir {
  readonly path: string;
  /** The version of each file that this process wrote or noticed last; null: there was none. */
  readonly #seen = new Map<CertFile, string | null>();
  #timer: NodeJS.Timeout | undefined;

  private constructor(path: string) {
    this.path = path;
  }

  static async open(path: string): Promise<CertDir> {
    try {
      await makePrivateFolder(path);
    } catch (error) {
      if (!isNotOurs(error as NodeJS.ErrnoException)) throw error;
    }
    return new CertDir(path);
  }

  /** The text of a file, or null if it does not exist. */
  async read(file: CertFile): Promise<string | null> {
    try {
      return await readFile(join(this.path, file), 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  /** Replaces a file atomically (mode 0600). */
  async write(file: CertFile, text: string): Promise<void> {
    await writeFileAtomic(join(this.path, file), text);
    this.#seen.set(file, await this.#version(file));
  }

  /** The file's JSON, validated by `schema`; null if the file does not exist. Throws if it is invalid. */
  async readJson<T>(file: CertFile, schema: z.ZodType<T>): Promise<T | null> {
    const text = await this.read(file);
    return text === null ? null : parseJson(file, text, schema);
  }

  /**
   * The secret of `auth_secret.txt`, with issuer and audience from `auth.json`; values without a file are absent. A
   * secret in the earlier format, JSON with all three, is rewritten. Throws if a file is damaged or the secret is too
   * short.
   */
  async readSecret(): Promise<Partial<TokenSettings>> {
    const text = await this.read('auth_secret.txt');
    if (text?.startsWith('{')) return this.#readEarlier(parseJson('auth_secret.txt', text, earlierFormat));
    const kept = (await this.readJson('auth.json', claims)) ?? {};
    if (text === null) return kept;
    const shared_secret = text.replace(/\r?\n$/, '');
    if (/[\r\n]/.test(shared_secret)) throw new Error('auth_secret.txt must hold one line');
    checkSecret(shared_secret, 'auth_secret.txt');
    return { ...kept, shared_secret };
  }

  /** Writes the secret last, so that an interrupted write leaves a state that can be read and written again. */
  async writeSecret({ shared_secret, ...kept }: Partial<TokenSettings>): Promise<void> {
    await this.write('auth.json', `${JSON.stringify(kept)}\n`);
    if (shared_secret === undefined) await this.#remove('auth_secret.txt');
    else await this.write('auth_secret.txt', `${shared_secret}\n`);
  }

  async #remove(file: CertFile): Promise<void> {
    await rm(join(this.path, file), { force: true });
    this.#seen.set(file, null);
  }

  async #version(file: CertFile): Promise<string | null> {
    const found = await stat(join(this.path, file), { bigint: true }).catch(() => null);
    return found && `${found.ino} ${found.size} ${found.mtimeNs}`;
  }

  async #readEarlier(settings: Partial<TokenSettings>): Promise<Partial<TokenSettings>> {
    if (settings.shared_secret !== undefined) checkSecret(settings.shared_secret, 'auth_secret.txt');
    await this.writeSecret(settings).catch((error: NodeJS.ErrnoException) => {
      if (!isNotOurs(error)) throw error;
    });
    return settings;
  }

  /**
   * Whether someone else has changed a file since the last call. Call it before reading the files: a change while they
   * are read then counts as a change at the next call.
   */
  async hasChanged(): Promise<boolean> {
    const versions = await Promise.all(files.map((file) => this.#version(file)));
    let changed = false;
    for (const [index, file] of files.entries()) {
      changed ||= this.#seen.get(file) !== versions[index];
      this.#seen.set(file, versions[index] ?? null);
    }
    return changed;
  }

  /** Calls `check` every `limits.certificate_check_ms` until `close`. */
  watch(check: () => Promise<void>): void {
    this.#timer = setInterval(() => void check(), limits.certificate_check_ms);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

/** A folder that belongs to the operator, mounted or owned so that svc cannot change it, may still be read. */
function isNotOurs({ code = '' }: NodeJS.ErrnoException): boolean {
  return ['EPERM', 'EACCES', 'EROFS'].includes(code);
}

function parseJson<T>(file: CertFile, text: string, schema: z.ZodType<T>): T {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    throw new Error(`${file} is damaged`);
  }
}

/** Throws if the secret is short enough to be guessed. */
export function checkSecret(secret: string, where: string): void {
  if (Buffer.byteLength(secret) >= limits.shared_secret_bytes_min) return;
  throw new Error(`${where} must have at least ${limits.shared_secret_bytes_min} bytes`);
}

/** svc cannot renew certificates of the operator, so it logs when they are about to expire. */
export function warnOfExpiry(log: Logger, days: number): void {
  if (days >= limits.certificate_warn_days) return;
  const message = days < 0 ? 'cert.pem has expired' : 'cert.pem expires soon';
  log.warn({ days: Math.floor(days) }, `${message}: put a new one into cert_dir`);
}
