/** The child process of `requestUnreachable`: sends the requests in its namespaces and prints the answers as JSON. */
import { execFileSync } from 'node:child_process';
import { TestAgentNode, WITH_NODES } from './agent-node.ts';
import { requesterOf } from './http.ts';
import { freePort, TestPlane } from './plane.ts';
import type {
  UnreachableAnswer,
  UnreachableOptions,
  UnreachablePhase,
  UnreachableState,
} from './unreachable-nodes.ts';

const [HERE, THERE, NOWHERE] = ['10.9.0.1', '10.9.0.2', '10.9.0.3'];
/** An unused address, where packets vanish without an error. */
const UNUSED_MAC = '02:00:00:00:00:99';

const ip = (args: string) => execFileSync('ip', args.split(' '));
const drop = (address: string) => ip(`neigh replace ${address} lladdr ${UNUSED_MAC} nud permanent dev near`);

const { n, phases, within_ms } = JSON.parse(process.argv[2]!) as UnreachableOptions;
ip('netns add far');
ip('link add near type veth peer name far netns far');
ip(`addr add ${HERE}/24 dev near`);
ip('link set near up');
ip(`-n far addr add ${THERE}/24 dev far`);
ip('-n far link set far up');
ip('-n far link set lo up');
drop(NOWHERE);

const plane = await TestPlane.open({ env: WITH_NODES });
const request = requesterOf(() => plane);
// Sequential, because a bootstrap token lets only one node join.
const stopped = await TestAgentNode.open(plane, { id: 'stopped' });
const killed = await TestAgentNode.open(plane, { id: 'killed' });
const apart = await TestAgentNode.open(plane, { id: 'apart', network: { netns: 'far', host: THERE } });
const closed = await TestAgentNode.open(plane, { id: 'closed' });
const hole = await TestAgentNode.open(plane, { id: 'hole' });
const nodes = [stopped, killed, apart, closed, hole];
const setTarget = (node: TestAgentNode, host: string, port: number) =>
  request('PUT', `/api/admin/agent-nodes/${node.id}`, { grpc_target: `https://${host}:${port}` });

const states: Record<
  UnreachableState,
  { node: TestAgentNode; disconnect?(): unknown; phases?: readonly UnreachablePhase[] }
> = {
  'closed port': { node: closed },
  'black hole': { node: hole },
  stopped: { node: stopped, disconnect: () => stopped.kill('SIGTERM') },
  killed: { node: killed, disconnect: () => killed.kill('SIGKILL') },
  partitioned: { node: apart, disconnect: () => drop(THERE), phases },
};
const answers: UnreachableAnswer[] = [];
try {
  const agents = new Map<TestAgentNode, string>();
  for (const node of nodes) agents.set(node, (await node.agent('exec sleep 1000')).id);
  await setTarget(closed, '127.0.0.1', await freePort());
  await setTarget(hole, NOWHERE, hole.port);
  // A newly started plane has no links, and cannot connect to these two nodes.
  await plane.kill();
  await plane.start();
  for (const node of [stopped, killed, apart]) await node.until('connected');

  for (const [state, { node, disconnect: leave, phases = [null] }] of Object.entries(states)) {
    await leave?.();
    const path = `/api/agents/${agents.get(node)}`;
    for (let i = 0; i < n; i++) {
      const phase = phases[Math.floor((i * phases.length) / n)]!;
      if (phase !== null) await node.until(phase);
      const action = (['stop', 'restart', 'delete'] as const)[i % 3]!;
      const began = performance.now();
      const { status, headers, body } = await (action === 'delete'
        ? request('DELETE', `${path}?force=true`, undefined, { within_ms })
        : request('POST', `${path}/${action}`, { grace_seconds: 0 }, { within_ms }));
      const ms = performance.now() - began;
      answers.push({
        state: state as UnreachableState,
        action,
        status,
        body,
        pending: headers.get('x-pending'),
        ms,
      });
    }
  }
} finally {
  for (const node of nodes) await node.close();
  await plane.close();
}
console.log(JSON.stringify(answers));
process.exit();
