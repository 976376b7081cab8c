/**
 * The node's side of a join and of a certificate renewal. The caller is already authorized: JoinService answers only
 * on a connection that has proven the bootstrap token, and renewal is for the plane only.
 */
import { Code, ConnectError, type ConnectRouter, type ServiceImpl } from '@connectrpc/connect';
import type { Logger } from '../../base/log.ts';
import { JoinService, type NodeService } from '../proto/node_pb.ts';
import type { NodeTrust } from '../trust/node-trust.ts';
import { versionInfo, versionMismatch } from '../wire.ts';

interface JoinOptions {
  trust: NodeTrust;
  log: Logger;
}

/** Returns the value for the listener's `routes`. */
export function joinRoutes({ trust, log }: JoinOptions): (router: ConnectRouter) => void {
  return (router) => {
    router.service(JoinService, {
      beginJoin: async ({ nodeId, planeId, speaks: theirs }) => {
        const wrong = versionMismatch(theirs, { us: `node ${trust.node_id}`, them: 'this plane' });
        log.info({ plane_id: planeId, registered: nodeId, ...(wrong && { wrong }) }, 'a plane asks to join');
        return { nodeId: trust.node_id, speaks: versionInfo(), certificateRequest: await trust.csr() };
      },
      completeJoin: async ({ planeId, certificate, ca, sharedSecret, issuer, audience }) => {
        const handed = { plane_id: planeId, certificate, ca, shared_secret: sharedSecret, issuer, audience };
        await refuseOnError(log, () => trust.completeJoin(handed));
        return {};
      },
    });
  };
}

/** For the listener's `renewal`. */
export function renewalHandlers({
  trust,
  log,
}: JoinOptions): Pick<ServiceImpl<typeof NodeService>, 'beginRenewal' | 'completeRenewal'> {
  return {
    beginRenewal: async () => ({ certificateRequest: await trust.csr() }),
    completeRenewal: async ({ certificate, ca }) => {
      await refuseOnError(log, () => trust.renew({ certificate, ca }));
      return {};
    },
  };
}

async function refuseOnError(log: Logger, install: () => Promise<void>): Promise<void> {
  try {
    await install();
  } catch (error) {
    log.warn({ err: error }, 'cannot install the certificate from the plane');
    throw new ConnectError('the certificate was not installed', Code.FailedPrecondition);
  }
}
