/**
 * The connection test of a node. It runs the steps in order and measures their duration. At the first failure it stops and
 * suggests what to check. The link provides the steps.
 */

import type { Logger } from '../../base/log.ts';
import type { NodeHealth } from '../../core/node.ts';
import { Problem, problems } from '../../core/problem.ts';
import { limits } from './limits.ts';
import type { HealthCheck, HealthCheckName, HealthReport } from './rules.ts';

type Step<T = void> = (signal: AbortSignal) => Promise<T>;

/** Each step throws a Problem to show to the operator. Any other error becomes `failed to connect to remote node`. */
export interface HealthSteps {
  /** The target's name resolves to an allowed address. */
  dns: Step;
  tcp: Step;
  /** The certificate's chain, name and node id are valid. */
  tls: Step;
  /** An authenticated call succeeds. */
  auth: Step<NodeHealth>;
  /** Both sides are compatible. */
  version: Step;
  /** The node's registered `default_worktree_root` is usable on the node; null if none is registered. */
  worktree_root: Step | null;
  /** The node's clock minus the plane's, once any response has reported it, even a rejection. */
  clock_skew_ms(): number | null;
  /** Closes the connections that the steps opened. */
  close(): void;
}

/** Each step has at most `limits.health_step_ms`. Never rejects for a failed step. Always closes the connections. */
export async function testNode(node_id: string, steps: HealthSteps, log: Logger): Promise<HealthReport> {
  const checks: HealthCheck[] = [];
  let health: NodeHealth | null = null;
  const remember: Step = async (signal) => {
    health = await steps.auth(signal);
  };
  const order: [HealthCheckName, Step | null][] = [
    ['dns', steps.dns],
    ['tcp', steps.tcp],
    ['tls', steps.tls],
    ['auth', remember],
    ['version', steps.version],
    ['worktree_root', steps.worktree_root],
  ];
  try {
    for (const [name, step] of order) {
      if (step === null) continue;
      const check = await run(name, step, steps, (error) =>
        log.warn({ err: error, node_id, check: name }, 'connection test failed'),
      );
      checks.push(check);
      if (!check.ok) break;
    }
  } finally {
    steps.close();
  }
  return report(node_id, checks, health, steps.clock_skew_ms());
}

async function run(
  name: HealthCheckName,
  step: Step,
  steps: HealthSteps,
  unexpected: (error: unknown) => void,
): Promise<HealthCheck> {
  const began = performance.now();
  const ms = () => Math.round((performance.now() - began) * 10) / 10;
  try {
    await withTimeLimit(step);
    return { name, ok: true, ms: ms() };
  } catch (error) {
    if (!(error instanceof Problem)) unexpected(error);
    const problem = error instanceof Problem ? error : problems.nodeUnreachable();
    const hint = hintFor(name, problem.code, steps.clock_skew_ms());
    return { name, ok: false, ms: ms(), error: problem.message, hint };
  }
}

/** Runs a step with a time limit. A step that ignores its signal does not delay the test. */
async function withTimeLimit(step: Step): Promise<void> {
  const stop = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(problems.nodeUnreachable()), limits.health_step_ms);
  });
  try {
    await Promise.race([step(stop.signal), timeout]);
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
}

function report(
  node_id: string,
  checks: HealthCheck[],
  health: NodeHealth | null,
  clock_skew_ms: number | null,
): HealthReport {
  const failed = checks.find(({ ok }) => !ok)?.name;
  const is_degraded =
    failed === 'worktree_root' || health?.disk.starts_allowed === false || isSkewed(clock_skew_ms);
  const status =
    failed !== undefined && failed !== 'worktree_root' ? 'unreachable' : is_degraded ? 'degraded' : 'ok';
  return {
    node_id,
    status,
    latency_ms: health && (checks.find(({ name }) => name === 'auth')?.ms ?? null),
    version: health?.version ?? null,
    uptime_seconds: health?.uptime_seconds ?? null,
    agents: health?.sessions_live ?? null,
    clock_skew_ms: clock_skew_ms === null ? null : Math.round(clock_skew_ms),
    disk: health?.disk ?? null,
    checks,
  };
}

function isSkewed(skew_ms: number | null): boolean {
  return skew_ms !== null && Math.abs(skew_ms) > limits.clock_skew_ms;
}

const hints: Record<HealthCheckName, string> = {
  dns: 'the control plane cannot resolve the host of grpc_target: check its spelling and DNS',
  tcp: 'nothing answers there: check that svc runs on the node, that the control plane can reach the address in internal_grpc.listen, and that no firewall blocks it',
  tls: 'something answers, but not with TLS as a node would: check that grpc_target is the internal_grpc.listen address of the node',
  auth: 'the connection works, but the call failed: see the logs of the plane and of the node',
  version: 'upgrade the older of the two',
  worktree_root:
    'default_worktree_root must be a folder that svc on the node can write to or create: in its safe_paths or, if it has agents.sandbox, in its worktree.default_root',
};

const hintsByCode: Record<string, string> = {
  grpc_target_refused:
    'svc never connects to link-local, metadata, multicast or unspecified addresses: use another host',
  certificate_verify_failed:
    'either the node has not joined (check whether the bootstrap token in its configuration is still valid), or its certificate has a different name (tls_server_name) or was issued by a different authority (ca.pem)',
  node_id_mismatch: 'server.node_id on the node must match the id that you registered',
  version_skew: hints.version,
  unauthorized:
    'internal_grpc.auth.shared_secret, issuer and audience must be the same on both sides; the log of the node has the reason',
};

function hintFor(name: HealthCheckName, code: string, skew_ms: number | null): string {
  if (code === 'unauthorized' && isSkewed(skew_ms)) {
    const seconds = Math.round(Math.abs(skew_ms!) / 1000);
    const side = skew_ms! > 0 ? 'ahead of' : 'behind';
    return `the clock of the node is ${seconds} s ${side} the control plane's: synchronize both with NTP`;
  }
  return (Object.hasOwn(hintsByCode, code) && hintsByCode[code]) || hints[name];
}
