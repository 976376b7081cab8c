import { findCgroupParent } from '../../node/processes/cgroup.ts';
import { nodeSuite } from '../../testing/node-suite.ts';
import { openerOfRemote } from '../../testing/remote-node.ts';
import { openerOfSimulated } from '../../testing/simulated-node.ts';

const delegated = (await findCgroupParent()) !== null;
const cleanup = delegated ? 'proven' : 'swept';
nodeSuite('remote node over TLS', { open: openerOfRemote(), cleanup });
nodeSuite('remote node over a network that cuts every connection', { open: openerOfSimulated(26), cleanup });
