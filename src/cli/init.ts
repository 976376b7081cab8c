/** `svc init`: a first configuration for one machine. It never overwrites a file. */
import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { newSecret } from '../base/ids.ts';
import { failed } from './failure.ts';

export function firstConfig(secret: string): string {
  return `# svc on one machine. All keys: svc config show

# Folders that agents may work in; worktrees below the data directory always may.
# safe_paths = ["~/code"]

[server]
listen = "127.0.0.1:8080"

[internal_grpc]
enabled = true
listen = "127.0.0.1:8081"

[internal_grpc.auth]
# The same on the control plane and every node. Keep it secret.
shared_secret = "${secret}"
`;
}

/** Writes the file for this user only; refuses one that exists. */
export async function init(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const file = await open(path, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') throw failed(`${path} exists already: it is left as it is`);
    throw failed(`${path} cannot be written: ${error.message}`);
  });
  try {
    await file.writeFile(firstConfig(newSecret()));
    await file.sync();
  } finally {
    await file.close();
  }
}
