/**
 * The plane's side of a join and of a certificate renewal. In a join, both ends prove through TLS that they know the
 * bootstrap token: each presents a fresh certificate signed by an authority that both derive from the token. The token
 * is never sent, nothing can be relayed into another connection, and only the plane can read what the node sends
 * afterwards.
 */
import { createClient, type Transport } from '@connectrpc/connect';
import type { Clock } from '../../base/clock.ts';
import { nodeIdMismatch, Problem, problems } from '../../core/problem.ts';
import { limits } from '../limits.ts';
import type { Connection, ConnectionOptions } from '../plane/connection.ts';
import { JoinService, NodeService } from '../proto/node_pb.ts';
import { toProblem, versionInfo, versionMismatch } from '../wire.ts';
import { JOIN_NAME, JOIN_NODE_URI, joinCa, makeJoinLeaf, svcUris } from './pki.ts';
import type { PlaneTrust } from './plane-trust.ts';

export interface JoinOptions {
  host: string;
  port: number;
  /** The id under which the node was registered. */
  node_id: string;
  /** The names by which the plane will connect to the node: the target's host and, if set, its TLS name. */
  names: string[];
  bootstrap_token: string;
  /**
   * Called after the node has proven the token, and before it gets a certificate. Returns false if another node has
   * used the token.
   */
  spend: () => Promise<boolean>;
  trust: PlaneTrust;
  open: (options: ConnectionOptions) => Promise<Connection>;
  clock: Clock;
  signal?: AbortSignal;
}

/**
 * Certifies a node. Throws Problems: `unauthorized` (the tokens differ, the node has already used this one, or it
 * accepts none), `node_unreachable`, `node_id_mismatch`, `version_skew`, `joining_not_possible` (the operator provides
 * the certificates). A node that reports the wrong id has not used the token.
 */
export async function joinNode(options: JoinOptions): Promise<void> {
  const { node_id, names, trust, signal } = options;
  if (trust.origin === 'operator' || trust.identity() === null) throw joinUnavailable();
  const connection = await openJoin(options);
  try {
    const node = createClient(JoinService, connection.transport);
    const call = { timeoutMs: limits.join_call_ms, ...(signal && { signal }) };
    const { plane_id } = trust;
    const begun = await node.beginJoin({ nodeId: node_id, planeId: plane_id, speaks: versionInfo() }, call);
    if (begun.nodeId !== node_id) throw nodeIdMismatch(node_id, begun.nodeId.slice(0, 64));
    const wrong = versionMismatch(begun.speaks, { us: 'this plane', them: `node ${node_id}` });
    if (wrong !== null) throw new Problem('bad_gateway', 'version_skew', wrong);
    if (!(await options.spend())) throw problems.nodeUnauthorized();
    await node.completeJoin(
      {
        planeId: plane_id,
        ...(await certify(trust, begun.certificateRequest, node_id, names)),
        ...tokenSettingsMessage(trust),
      },
      call,
    );
  } catch (error) {
    throw toProblem(error);
  } finally {
    connection.close();
  }
}

/** Issues a new certificate for the key of a linked node. Throws the same errors as other calls to the node. */
export async function renewNode(options: {
  transport: Transport;
  node_id: string;
  names: string[];
  trust: PlaneTrust;
  signal?: AbortSignal;
}): Promise<void> {
  const { transport, node_id, names, trust, signal } = options;
  const node = createClient(NodeService, transport);
  const call = { timeoutMs: limits.join_call_ms, ...(signal && { signal }) };
  try {
    const { certificateRequest } = await node.beginRenewal({}, call);
    await node.completeRenewal(await certify(trust, certificateRequest, node_id, names), call);
  } catch (error) {
    throw toProblem(error);
  }
}

async function openJoin({
  host,
  port,
  bootstrap_token,
  open,
  clock,
  signal,
}: JoinOptions): Promise<Connection> {
  const ca = await joinCa(bootstrap_token);
  const own = await makeJoinLeaf(ca, 'plane', clock.now());
  try {
    return await open({
      host,
      port,
      servername: JOIN_NAME,
      tls: { ca: ca.cert, ...own },
      verify: ({ raw }, misnamed) =>
        svcUris(raw).includes(JOIN_NODE_URI) ? misnamed : problems.certificateVerifyFailed(),
      ...(signal && { signal }),
    });
  } catch (error) {
    // A node that does not know the token has no certificate that is valid here.
    const refused = error instanceof Problem && error.code === problems.certificateVerifyFailed().code;
    throw refused ? problems.nodeUnauthorized() : error;
  }
}

async function certify(
  trust: PlaneTrust,
  csr: string,
  node_id: string,
  names: string[],
): Promise<{ certificate: string; ca: string }> {
  const { ca } = trust.identity()!;
  return { certificate: await trust.issue(csr, node_id, names), ca };
}

function tokenSettingsMessage(trust: PlaneTrust): { sharedSecret: string; issuer: string; audience: string } {
  const { shared_secret, issuer, audience } = trust.tokenSettings();
  return { sharedSecret: shared_secret, issuer, audience };
}

function joinUnavailable(): Problem {
  const message = 'nodes cannot join: this plane issues no certificates, so the node needs its own';
  return new Problem('bad_gateway', 'joining_not_possible', message);
}
