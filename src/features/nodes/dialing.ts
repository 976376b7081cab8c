/**
 * Opens connections to a registered node. Each time, it resolves the target's name, checks the address, and verifies that
 * the certificate is the node's. If the plane has not certified the node yet, it does so with a usable bootstrap token. If
 * the node accepts the plane's certificate, no token is sent, so clocks do not matter; otherwise, every call has a fresh
 * token.
 */
import type { Clock } from '../../base/clock.ts';
import { limits } from '../../base/limits.ts';
import type { Logger } from '../../base/log.ts';
import { Problem, problems } from '../../core/problem.ts';
import { type Connection, type ConnectionOptions, openConnection } from '../../link/plane/connection.ts';
import { askHealth } from '../../link/plane/health.ts';
import { parseTarget, resolveTarget, type Target } from '../../link/plane/target.ts';
import { joinNode } from '../../link/trust/join.ts';
import { type PlaneTrust, verifyNode } from '../../link/trust/plane-trust.ts';
import type { Bootstrap } from './bootstrap.ts';
import type { NodeRow } from './queries.ts';

export interface DialingDeps {
  trust: PlaneTrust;
  bootstrap: Pick<Bootstrap, 'usable' | 'spend'>;
  /** Called when the plane has issued a certificate to the node. */
  recordJoin(node_id: string, details: Record<string, unknown>): Promise<void>;
  /** Whether nodes are expected to require tokens. If false, the first call is made without one. */
  tokens_first: boolean;
  clock: Clock;
  log: Logger;
}

/** A connection on which no call has been made yet. */
export interface DialedConnection {
  connection: Connection;
  /** Whether calls have a token. */
  with_token: boolean;
}

/** Opens a connection that accepts calls. A node without a valid certificate may join first. Throws a Problem. */
export async function dial(deps: DialingDeps, row: NodeRow, signal: AbortSignal): Promise<Connection> {
  const dialed = await connect(deps, row, signal).catch(async (error: unknown) => {
    const { origin } = deps.trust;
    if (!isUncertified(error) || origin === 'operator' || deps.trust.identity() === null) throw error;
    if (!(await join(deps, row, signal))) throw error;
    return connect(deps, row, signal);
  });
  try {
    const options = { signal, timeoutMs: limits.link_hello_ms };
    await withTokenRetry(dialed, () => askHealth(dialed.connection.transport, null, options));
    return dialed.connection;
  } catch (error) {
    dialed.connection.close();
    throw error;
  }
}

/** Returns the result of a first call, which is repeated with a token if the node requires one. */
export async function withTokenRetry<T>(dialed: DialedConnection, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    const refused = error instanceof Problem && error.code === problems.nodeUnauthorized().code;
    if (!refused || dialed.with_token) throw error;
    dialed.with_token = true;
    return call();
  }
}

/** Tries the addresses of the target in turn, and connects to exactly the address that was checked. */
export async function connect(
  { trust, tokens_first }: Pick<DialingDeps, 'trust' | 'tokens_first'>,
  row: NodeRow,
  signal: AbortSignal,
): Promise<DialedConnection> {
  const { host, port } = toTarget(row);
  const dialed = { with_token: tokens_first || trust.identity() === null };
  const connection = await tryAddresses(host, (address) =>
    openConnection({
      host: address,
      port,
      servername: row.tls_server_name ?? host,
      tls: trust.identity(),
      verify: verifyNode(row.id, row.tls_server_name),
      token: async () => (dialed.with_token ? trust.token() : null),
      signal,
    }),
  );
  return Object.assign(dialed, { connection });
}

export function toTarget(row: NodeRow): Target {
  const target = parseTarget(row.grpc_target);
  if (!target) throw problems.grpcTargetInvalid();
  return target;
}

/** The names that a node's certificate must contain. */
export function expectedNames(row: NodeRow): string[] {
  const { host } = toTarget(row);
  return row.tls_server_name === null ? [host] : [host, row.tls_server_name];
}

/** Lets the node join. Returns false if there is no usable token. Throws the error of the last attempt. */
async function join(deps: DialingDeps, row: NodeRow, signal: AbortSignal): Promise<boolean> {
  const { trust, bootstrap, clock, log } = deps;
  const { host, port } = toTarget(row);
  let failure: unknown = null;
  for (const { id, token } of await bootstrap.usable(row.id)) {
    try {
      await tryAddresses(host, (address) =>
        joinNode({
          host: address,
          port,
          node_id: row.id,
          names: expectedNames(row),
          bootstrap_token: token,
          trust,
          spend: () => bootstrap.spend(id, row.id),
          open: (options: ConnectionOptions) => openConnection(options),
          clock,
          signal,
        }),
      );
      await deps.recordJoin(row.id, { token_id: id, grpc_target: row.grpc_target });
      log.info({ node_id: row.id }, 'node joined');
      return true;
    } catch (error) {
      failure = error;
    }
  }
  if (failure !== null) throw failure;
  return false;
}

async function tryAddresses<T>(host: string, attempt: (address: string) => Promise<T>): Promise<T> {
  let failure: unknown = problems.nodeUnreachable();
  for (const address of await resolveTarget(host)) {
    try {
      return await attempt(address);
    } catch (error) {
      failure = error;
      if (!(error instanceof Problem) || error.code !== problems.nodeUnreachable().code) break;
    }
  }
  throw failure;
}

function isUncertified(error: unknown): boolean {
  return error instanceof Problem && error.code === problems.certificateVerifyFailed().code;
}
