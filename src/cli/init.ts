/** `svc init`: writes a first configuration, for one machine or for a remote node. It never overwrites a file. */
import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { newSecret } from '../base/ids.ts';
import { limits } from '../base/limits.ts';
import { parseAddress } from '../core/config.ts';
import { MAIN_NODE, NODE_ID, NODE_ID_RULE } from '../core/node.ts';
import { nodeToml } from '../core/node-toml.ts';
import { problems } from '../core/problem.ts';
import { failed, usage } from './failure.ts';

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

/** Returns a node's first configuration. Refuses values that the node would refuse when it starts. */
export function nodeConfig(options: { node_id: string; token: string; listen?: string | undefined }): string {
  const { node_id, token, listen } = options;
  if (node_id === MAIN_NODE) throw usage(problems.nodeIdReserved().message);
  if (!NODE_ID.test(node_id)) {
    throw usage(`--id ${node_id}: ${NODE_ID_RULE}`);
  }
  if (listen !== undefined && parseAddress(listen) === null) {
    throw usage(`--listen ${listen}: must be <host>:<port>`);
  }
  if (token.length < limits.bootstrap_token_chars_min || /[\0-\x1f\x7f]/.test(token)) {
    throw usage('not a bootstrap token: run svc nodes token on the control plane to get one');
  }
  return nodeToml({ node_id, token, ...(listen !== undefined && { listen }) });
}

export interface InitOptions {
  /** Absent: a first configuration for one machine. */
  text?: string;
  /** Absolute. Absent: where svc keeps its data by default. */
  data_dir?: string | undefined;
}

/** Writes the file, readable by this user only; throws if it exists. */
export async function init(
  path: string,
  { text = firstConfig(newSecret()), data_dir }: InitOptions = {},
): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const file = await open(path, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') throw failed(`${path} already exists; it was not changed`);
    throw failed(`${path} cannot be written: ${error.message}`);
  });
  try {
    await file.writeFile(data_dir === undefined ? text : withDataDir(text, data_dir));
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Adds the data directory below the heading of a configuration. */
function withDataDir(text: string, data_dir: string): string {
  // JSON and TOML use the same quotes and escapes for what occurs in paths.
  return text.replace('\n\n', () => `\n\ndata_dir = ${JSON.stringify(data_dir)}\n\n`);
}
