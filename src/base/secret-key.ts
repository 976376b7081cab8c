/**
 * The plane's own key, which encrypts secrets in the database. It is a file beside the database and is not part of
 * backups.
 */
import { hkdfSync, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { writeFileAtomic } from './files.ts';

const KEY_BYTES = 32;

/**
 * Reads the key, or creates it (mode 0600). Losing it invalidates the stored responses of the last day's idempotency
 * keys, unused bootstrap tokens, the actor tokens of running sessions, and the push key. Devices subscribe to
 * notifications again when their user opens the web UI.
 */
export async function loadSecretKey(path: string): Promise<Uint8Array> {
  try {
    const key = await readFile(path);
    if (key.length === KEY_BYTES) return key;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const key = randomBytes(KEY_BYTES);
  await writeFileAtomic(path, key, 0o600);
  return key;
}

/** Derives a key of 32 bytes for one purpose, so that no two purposes share a key. */
export function subkey(key: Uint8Array, use: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', key, '', use, KEY_BYTES));
}
