import { MIB } from '../../base/limits.ts';
import { findCgroupParent } from '../../node/processes/cgroup.ts';
import { nodeSuite } from '../../testing/node-suite.ts';
import { remoteNodeOpener } from '../../testing/remote-node.ts';
import { simulatedNodeOpener } from '../../testing/simulated-node.ts';

const delegated = (await findCgroupParent()) !== null;
const cleanup = delegated ? 'proven' : 'swept';
nodeSuite('remote node over TLS', { open: remoteNodeOpener(), cleanup });
nodeSuite('remote node over a network that cuts every connection', {
  open: simulatedNodeOpener(26),
  cleanup,
  // Most connections carry less than 300 kB.
  large_bytes: 4 * MIB,
});
