/**
 * Connections to a registered node: the target's name is looked up and its address checked each time, the certificate
 * must be the node's, and where none is ours yet a usable bootstrap token makes it so. Every call carries a fresh token.
 */
import type { Interceptor } from '@connectrpc/connect';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import { Problem, problems } from '../../domain/problem.ts';
import { type Connection, type ConnectionOptions, openConnection } from '../../link/connection.ts';
import { joinNode } from '../../link/join.ts';
import { type PlaneTrust, verifyNode } from '../../link/plane-trust.ts';
import { parseTarget, resolveTarget, type Target } from '../../link/target.ts';
import type { NodeRow } from '../../store/nodes.ts';
import type { Bootstrap } from './bootstrap.ts';

export interface DialingDeps {
  trust: PlaneTrust;
  bootstrap: Pick<Bootstrap, 'usable' | 'spend'>;
  /** A certificate of ours was given to the node. */
  joined(node_id: string, details: Record<string, unknown>): Promise<void>;
  clock: Clock;
  log: Logger;
}

/** Opens a connection; when the node has no certificate that holds, it may join first. Throws a Problem. */
export async function dial(deps: DialingDeps, row: NodeRow, signal: AbortSignal): Promise<Connection> {
  try {
    return await connect(deps.trust, row, signal);
  } catch (error) {
    if (!isUncertified(error) || deps.trust.origin === 'operator' || deps.trust.identity() === null)
      throw error;
    if (!(await join(deps, row, signal))) throw error;
    return connect(deps.trust, row, signal);
  }
}

/** Tries the addresses of the target in turn; each one that is tried was checked, and is the one that is dialled. */
export async function connect(trust: PlaneTrust, row: NodeRow, signal: AbortSignal): Promise<Connection> {
  const { host, port } = targetOf(row);
  return tryAddresses(host, (address) =>
    openConnection({
      host: address,
      port,
      servername: row.tls_server_name ?? host,
      tls: trust.identity(),
      verify: verifyNode(row.id, row.tls_server_name),
      interceptors: [withToken(trust)],
      signal,
    }),
  );
}

export function targetOf(row: NodeRow): Target {
  const target = parseTarget(row.grpc_target);
  if (!target) throw problems.grpcTargetInvalid();
  return target;
}

/** What a node's certificate has to be for. */
export function namesOf(row: NodeRow): string[] {
  const { host } = targetOf(row);
  return row.tls_server_name === null ? [host] : [host, row.tls_server_name];
}

/** False when no usable token is there. Throws what the last try failed with. */
async function join(deps: DialingDeps, row: NodeRow, signal: AbortSignal): Promise<boolean> {
  const { trust, bootstrap, clock, log } = deps;
  const { host, port } = targetOf(row);
  let failure: unknown = null;
  for (const { id, token } of await bootstrap.usable(row.id)) {
    try {
      await tryAddresses(host, (address) =>
        joinNode({
          host: address,
          port,
          node_id: row.id,
          names: namesOf(row),
          bootstrap_token: token,
          trust,
          spend: () => bootstrap.spend(id, row.id),
          open: (options: ConnectionOptions) => openConnection(options),
          clock,
          signal,
        }),
      );
      await deps.joined(row.id, { token_id: id, grpc_target: row.grpc_target });
      log.info({ node_id: row.id }, 'node has joined');
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

function withToken(trust: PlaneTrust): Interceptor {
  return (next) => async (request) => {
    request.header.set('authorization', `Bearer ${await trust.token()}`);
    return next(request);
  };
}

function isUncertified(error: unknown): boolean {
  return error instanceof Problem && error.code === problems.certificateVerifyFailed().code;
}
