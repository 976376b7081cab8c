/** Programs that the bench compares svc with. They are not dependencies: npm installs them into a temporary folder once. */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../../scripts/run.ts';

export const peers = {
  pm2: '7.0.4',
  'opencode-ai': '1.18.33',
  '@dbos-inc/dbos-sdk': '5.3.0',
  'pg-boss': '12.38.0',
} as const;
export type Peer = keyof typeof peers;

/** The folder of an installed package, in exactly the version above. Throws if npm's registry does not answer. */
export async function installPeer(name: Peer): Promise<string> {
  const folder = join(tmpdir(), `svc-bench-${name.replace('/', '-')}-${peers[name]}`);
  const installed = join(folder, 'node_modules', name);
  if (existsSync(join(installed, 'package.json'))) return installed;
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{"private":true}\n');
  const flags = ['--prefix', folder, '--no-audit', '--no-fund', '--no-save'];
  const { ok, output } = await run(['npm', 'install', ...flags, `${name}@${peers[name]}`]);
  if (!ok) throw new Error(`cannot install ${name} ${peers[name]}: ${output}`);
  return installed;
}
