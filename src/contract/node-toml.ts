/** The configuration of a remote node that joins with a bootstrap token, as the API and `svc init --node` give it. */
export const NODE_LISTEN = '0.0.0.0:8081';
export const NODE_ID_UNSET = 'CHANGE-ME';

/** JSON's quotes and escapes are TOML's, as far as configuration values have them. */
const quoted = JSON.stringify;

export function nodeToml(options: { node_id?: string; token: string; listen?: string }): string {
  const { node_id = NODE_ID_UNSET, token, listen = NODE_LISTEN } = options;
  return `# svc as a remote Agent Node. All keys: svc config show

# Folders on this machine that agents may work in; worktrees below the data directory always may.
# safe_paths = ["~/code"]

[worktree]
# Where agents without a folder of their own work.
default_root = "~/svc-worktrees"

[server]
role = "node"
# The id that it is registered under on the control plane.
node_id = ${quoted(node_id)}

[internal_grpc]
enabled = true
# The control plane connects here.
listen = ${quoted(listen)}

[internal_grpc.bootstrap]
# To join with, once. Certificate and secrets come from the control plane then.
token = ${quoted(token)}
`;
}
