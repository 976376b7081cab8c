/** The plane's own key, for what is stored sealed. It lives beside the database, not in it, and is in no backup of it. */
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { writeFileAtomic } from '../base/files.ts';

const KEY_BYTES = 32;

/**
 * Reads the key, or makes it (mode 0600). A lost one costs the answers of the last day's idempotency keys, bootstrap tokens
 * that were not used yet, the actor tokens of running sessions, and the key that devices subscribed to notifications with,
 * which do so again when their user opens the web UI; no more.
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
