/** The steps of a connection test, and a fix for the one that failed (pure). */
import type { Answered } from '../../api/client.ts';

export type NodeRecord = Answered<'getAgentNode'>;
export type HealthReport = Answered<'getAgentNodeHealth'>;
export type Check = HealthReport['checks'][number];

const titles: Record<Check['name'], string> = {
  dns: 'DNS',
  tcp: 'TCP',
  tls: 'TLS',
  auth: 'Auth',
  version: 'Version',
  worktree_root: 'Worktree root',
};

export interface Step {
  title: string;
  /** Null: the test ended before this step. */
  check: Check | null;
}

/** All steps of the test for this node, in order. */
export function listSteps(report: HealthReport, node: Pick<NodeRecord, 'default_worktree_root'>): Step[] {
  const names = Object.keys(titles) as Check['name'][];
  return names
    .filter((name) => name !== 'worktree_root' || node.default_worktree_root !== null)
    .map((name) => ({
      title: titles[name],
      check: report.checks.find((check) => check.name === name) ?? null,
    }));
}

/** An action that is likely to fix a failed step. */
export type Fix =
  | {
      label: string;
      kind: 'change';
      changes: Partial<Pick<NodeRecord, 'tls_server_name' | 'default_worktree_root'>>;
    }
  | { label: string; kind: 'register'; id: string }
  | { label: string; kind: 'join' };

export function getFix(
  { name, error = '' }: Check,
  node: Pick<NodeRecord, 'grpc_target' | 'tls_server_name'>,
): Fix | null {
  const reported = /node says (\S+)$/.exec(error)?.[1];
  if (reported !== undefined) return { label: `Register as ${reported}`, kind: 'register', id: reported };
  if (name === 'worktree_root') {
    const changes = { default_worktree_root: null };
    return { label: 'Use the root configured on the node', kind: 'change', changes };
  }
  if (error === 'certificate verify failed') {
    if (node.tls_server_name === null) return { label: 'Join node with token', kind: 'join' };
    const host = getHost(node.grpc_target);
    return {
      label: `Use ${host} as the TLS server name`,
      kind: 'change',
      changes: { tls_server_name: null },
    };
  }
  return null;
}

/** The step at which the test failed, on one line; null if none failed. */
export function failureText(
  report: HealthReport,
  { grpc_target }: Pick<NodeRecord, 'grpc_target'>,
): string | null {
  const failed = report.checks.find(({ ok }) => !ok);
  if (!failed) return null;
  const { name, error = 'failed' } = failed;
  const address = grpc_target.replace('https://', '');
  // The service has one message for everything that keeps it from connecting.
  const is_general = error === 'failed to connect to remote node';
  if (name === 'dns' && is_general) return `DNS: cannot resolve ${getHost(grpc_target)}`;
  if (name === 'tcp' && is_general) return `TCP: nothing answers on ${address}`;
  if (name === 'tls' && is_general) return `TLS: no node answers on ${address}`;
  return `${titles[name]}: ${error}`;
}

function getHost(target: string): string {
  return URL.canParse(target) ? new URL(target).hostname : target;
}

export type NodeField = 'id' | 'name' | 'grpc_target' | 'tls_server_name' | 'default_worktree_root' | 'form';

/** The field that the server's message is about. A taken id or name counts for the id if the form has one. */
export function nodeFieldFor(message: string, is_new: boolean): NodeField {
  if (message.startsWith('agent node id or name')) return is_new ? 'id' : 'name';
  if (message.startsWith('agent node id')) return 'id';
  const fields = ['grpc_target', 'tls_server_name', 'default_worktree_root', 'name', 'id'] as const;
  return fields.find((field) => new RegExp(`^${field}\\b`).test(message)) ?? 'form';
}

/** `count`: sessions that the node reported, but the plane has not recovered. */
export function unrecoveredText(count: number): string {
  return `${count} unknown ${count === 1 ? 'session' : 'sessions'} not recovered`;
}
