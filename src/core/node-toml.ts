/** The configuration file of a remote node that joins with a bootstrap token, for the API and `svc init --node`. */
export const NODE_LISTEN = '0.0.0.0:8081';
export const NODE_ID_UNSET = 'CHANGE-ME';

/** JSON and TOML use the same quotes and escapes for the characters that occur in configuration values. */
const quoted = JSON.stringify;

/** The text of the configuration file. Without `node_id`, a placeholder that the operator must replace. */
export function nodeToml(options: { node_id?: string; token: string; listen?: string }): string {
  const { node_id = NODE_ID_UNSET, token, listen = NODE_LISTEN } = options;
  return `# Configuration of a remote node. To list all keys, run: svc config show

# Folders on this machine that agents may work in, in addition to worktrees in the data directory.
# safe_paths = ["~/code"]

[worktree]
# Folder for worktrees that svc creates.
default_root = "~/svc-worktrees"

[server]
role = "node"
# Id of this node, as registered on the control plane.
node_id = ${quoted(node_id)}

[internal_grpc]
enabled = true
# The control plane connects here.
listen = ${quoted(listen)}

[internal_grpc.bootstrap]
# Token for joining, valid once. The certificate and secrets then come from the control plane.
token = ${quoted(token)}
`;
}
