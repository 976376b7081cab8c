/**
 * The file in which `svc login` keeps tokens: one per host, in `$XDG_CONFIG_HOME/svc/credentials.json`, readable by
 * this user only. This module never sends a token and does not check whether it is valid.
 */
import { mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { writeFileAtomic } from '../base/files.ts';
import { xdgFolder } from '../base/xdg.ts';
import type { Io } from './context.ts';
import { failed } from './failure.ts';

const credentialSchema = z.object({ token: z.string(), username: z.string() });
const fileSchema = z.object({
  /** The host of the last login, used if nothing else names one. */
  current: z.string().nullable().default(null),
  hosts: z.record(z.string(), credentialSchema).default({}),
});
export type Credential = z.infer<typeof credentialSchema>;
export type Credentials = z.infer<typeof fileSchema>;

export function credentialsFile(io: Pick<Io, 'env' | 'home'>): string {
  return join(xdgFolder(io, 'XDG_CONFIG_HOME', '.config'), 'svc', 'credentials.json');
}

export async function readCredentials(io: Pick<Io, 'env' | 'home'>): Promise<Credentials> {
  const path = credentialsFile(io);
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '{}';
    throw failed(`${path} cannot be read: ${error.message}`);
  });
  try {
    return fileSchema.parse(JSON.parse(text));
  } catch {
    throw failed(`${path} is damaged: remove it and sign in again`);
  }
}

export async function storeCredential(io: Io, url: string, credential: Credential): Promise<void> {
  const all = await readCredentials(io);
  await write(io, { current: url, hosts: { ...all.hosts, [url]: credential } });
}

export async function dropCredential(io: Io, url: string): Promise<void> {
  const all = await readCredentials(io);
  const { [url]: _dropped, ...hosts } = all.hosts;
  await write(io, { current: all.current === url ? null : all.current, hosts });
}

async function write(io: Io, credentials: Credentials): Promise<void> {
  const path = credentialsFile(io);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFileAtomic(path, `${JSON.stringify(credentials, null, 2)}\n`, 0o600);
}
