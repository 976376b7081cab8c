/**
 * Keeps the files of `cert_dir` the same for all planes that share a database: there they are encrypted with `secret.key`. A
 * plane that starts takes over what another one has changed, and stores what an operator has changed here.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '../base/async.ts';
import { makePrivateFolder, writeFileAtomic } from '../base/files.ts';
import type { Logger } from '../base/log.ts';
import { seal, unseal } from '../base/sealing.ts';
import { subkey } from '../base/secret-key.ts';
import { Problem } from '../core/problem.ts';
import type { Store } from '../store/store.ts';
import { deleteTrustFile, listTrustFiles, putTrustFile, type TrustFile } from '../store/trust-files.ts';
import { limits } from './limits.ts';

/** In this order: a certificate is never without its key. */
const SHARED = ['ca-key.pem', 'key.pem', 'ca.pem', 'cert.pem', 'auth.json', 'auth_secret.txt'] as const;
type Shared = (typeof SHARED)[number];

/** Hashes of the files as they were when they last were the same as in the database. */
type Marks = Partial<Record<Shared, string>>;
const MARK_FILE = 'shared.json';

export class TrustFiles {
  readonly #folder: string;
  readonly #key: Uint8Array;
  readonly #log: Logger;
  #storing: Promise<void> = Promise.resolve();

  /** `key`: of the data directory. */
  constructor({ folder, key, log }: { folder: string; key: Uint8Array; log: Logger }) {
    this.#folder = folder;
    this.#key = subkey(key, 'trust files');
    this.#log = log;
  }

  /**
   * Writes the files from the database that differ here, except those that were changed here only. Returns whether any was
   * written. Throws a Problem if they were encrypted with another key. Idempotent.
   */
  async take(files: readonly TrustFile[]): Promise<boolean> {
    await makePrivateFolder(this.#folder);
    const marks = await this.#readMarks();
    const shared: Marks = {};
    const differing: { name: Shared; text: Buffer }[] = [];
    const missing: Shared[] = [];
    for (const name of SHARED) {
      const stored = files.find((file) => file.name === name);
      if (stored === undefined) continue;
      const text = this.#open(stored);
      const here = await this.#read(name);
      shared[name] = hashOf(text);
      if (here?.equals(text)) continue;
      if (here === null) missing.push(name);
      const changed_here = here !== null && marks[name] !== undefined && marks[name] !== hashOf(here);
      if (changed_here && marks[name] === hashOf(text)) continue;
      if (changed_here)
        this.#log.warn({ file: name }, 'another control plane has changed this file too: it replaces ours');
      differing.push({ name, text });
    }
    for (const { name, text } of differing) await writeFileAtomic(join(this.#folder, name), text);
    if (missing.length > 0)
      this.#log.info({ folder: this.#folder, files: missing }, 'missing files were taken from the database');
    if (differing.length > 0) await this.#mark(shared);
    return differing.length > 0;
  }

  /** Stores the files of this folder in the database, after earlier calls are done. Idempotent. */
  store(store: Store): Promise<void> {
    const stored = this.#storing.then(() => this.#store(store));
    this.#storing = stored.catch(() => {});
    return stored;
  }

  /** Like `store`, but tries again until it succeeds or the signal aborts. Never rejects. */
  async storeEventually(store: Store, signal: AbortSignal): Promise<void> {
    for (let has_failed = false; !signal.aborted; has_failed = true) {
      try {
        return await this.store(store);
      } catch (err) {
        const message = 'the other control planes do not have the changed certificates yet; trying again';
        if (!has_failed) this.#log.error({ err }, message);
        await sleep(limits.trust_files_retry_ms, signal);
      }
    }
  }

  async #store(store: Store): Promise<void> {
    const here: { name: Shared; text: Buffer }[] = [];
    for (const name of SHARED) {
      const text = await this.#read(name);
      if (text !== null) here.push({ name, text });
    }
    await store.write(async (tx) => {
      const rows = await listTrustFiles(tx);
      for (const { name, text } of here) {
        const known = rows.find((row) => row.name === name);
        if (known && this.#open(known).equals(text)) continue;
        await putTrustFile(tx, { name, sealed: seal(this.#key, name, text) });
      }
      const gone = rows.filter((row) => !here.some(({ name }) => name === row.name));
      for (const { name } of gone) await deleteTrustFile(tx, name);
    });
    // Not what the folder has now: it may have changed meanwhile.
    await this.#mark(Object.fromEntries(here.map(({ name, text }) => [name, hashOf(text)])));
  }

  #open({ name, sealed }: TrustFile): Buffer {
    try {
      return unseal(this.#key, name, sealed);
    } catch {
      throw new Problem(
        'conflict',
        'wrong_secret_key',
        'the certificates in the database were encrypted with another secret.key: copy it from the data directory of another control plane',
      );
    }
  }

  async #read(name: string): Promise<Buffer | null> {
    try {
      return await readFile(join(this.#folder, name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  async #readMarks(): Promise<Marks> {
    const text = await this.#read(MARK_FILE);
    return text === null ? {} : (JSON.parse(text.toString('utf8')) as Marks);
  }

  async #mark(marks: Marks): Promise<void> {
    await writeFileAtomic(join(this.#folder, MARK_FILE), JSON.stringify(marks));
  }
}

function hashOf(text: Uint8Array): string {
  return createHash('sha256').update(text).digest('hex');
}
