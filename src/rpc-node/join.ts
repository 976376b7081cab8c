/**
 * The node's side of a join and of a renewal. Who may call was decided before: JoinService answers only on a connection
 * in which the bootstrap token was proven, renewal only to the plane.
 */
import { Code, ConnectError, type ConnectRouter, type ServiceImpl } from '@connectrpc/connect';
import type { Logger } from '../base/log.ts';
import { JoinService, type NodeService } from '../contract/gen/node_pb.ts';
import type { NodeTrust } from '../link/node-trust.ts';
import { misunderstanding, speaks } from '../link/wire.ts';

interface JoinDoor {
  trust: NodeTrust;
  log: Logger;
}

/** For the door's `routes`. */
export function joinRoutes({ trust, log }: JoinDoor): (router: ConnectRouter) => void {
  return (router) => {
    router.service(JoinService, {
      beginJoin: async ({ nodeId, planeId, speaks: theirs }) => {
        const wrong = misunderstanding(theirs, { us: `node ${trust.node_id}`, them: 'this plane' });
        log.info({ plane_id: planeId, registered: nodeId, ...(wrong && { wrong }) }, 'a plane asks to join');
        return { nodeId: trust.node_id, speaks: speaks(), certificateRequest: await trust.csr() };
      },
      completeJoin: async ({ planeId, certificate, ca, sharedSecret, issuer, audience }) => {
        const handed = { plane_id: planeId, certificate, ca, shared_secret: sharedSecret, issuer, audience };
        await orRefuse(log, () => trust.completeJoin(handed));
        return {};
      },
    });
  };
}

/** For the door's `renewal`. */
export function renewalHandlers({
  trust,
  log,
}: JoinDoor): Pick<ServiceImpl<typeof NodeService>, 'beginRenewal' | 'completeRenewal'> {
  return {
    beginRenewal: async () => ({ certificateRequest: await trust.csr() }),
    completeRenewal: async ({ certificate, ca }) => {
      await orRefuse(log, () => trust.renew({ certificate, ca }));
      return {};
    },
  };
}

async function orRefuse(log: Logger, install: () => Promise<void>): Promise<void> {
  try {
    await install();
  } catch (error) {
    log.warn({ err: error }, 'a certificate of the plane was not installed');
    throw new ConnectError('the certificate was not installed', Code.FailedPrecondition);
  }
}
