import { findCgroupParent } from '../runtime/cgroup.ts';
import { nodeSuite } from '../testing/node-suite.ts';
import { openerOfRemote } from '../testing/remote-node.ts';

const delegated = (await findCgroupParent()) !== null;
nodeSuite('remote node over TLS', { open: openerOfRemote(), cleanup: delegated ? 'proven' : 'swept' });
