/** The child process of `requestUnreachable`: sends the requests in its namespaces and prints the answers as JSON. */
import { execFileSync } from 'node:child_process';
import { TestAgentNode, WITH_NODES } from './agent-node.ts';
import { requesterOf } from './http.ts';
import { freePort, TestPlane } from './plane.ts';
import type { UnreachableAnswer, UnreachableOptions, UnreachableState } from './unreachable-nodes.ts';

const [HERE, THERE, NOWHERE] = ['10.9.0.1', '10.9.0.2', '10.9.0.3'];
/** An unused address, where packets vanish without an error. */
const UNUSED_MAC = '02:00:00:00:00:99';

const ip = (args: string) => execFileSync('ip', args.split(' '));
const drop = (address: string) => ip(`neigh replace ${address} lladdr ${UNUSED_MAC} nud permanent dev near`);

const { states, n, phases, within_ms } = JSON.parse(process.argv[2]!) as UnreachableOptions;
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
const nodes = new Map<UnreachableState, TestAgentNode>();
for (const state of states) {
  const network = state === 'partitioned' ? { netns: 'far', host: THERE } : undefined;
  const id = state.replace(' ', '-');
  nodes.set(state, await TestAgentNode.open(plane, { id, ...(network && { network }) }));
}
/** Nodes whose target changes, so that a newly started plane cannot connect to them. */
const lost: Partial<Record<UnreachableState, (node: TestAgentNode) => Promise<unknown>>> = {
  'closed port': async (node) => setTarget(node, '127.0.0.1', await freePort()),
  'black hole': (node) => setTarget(node, NOWHERE, node.port),
};
/** How the others are disconnected. */
const disconnect: Partial<Record<UnreachableState, (node: TestAgentNode) => unknown>> = {
  stopped: (node) => node.kill('SIGTERM'),
  killed: (node) => node.kill('SIGKILL'),
  partitioned: () => drop(THERE),
};
const setTarget = (node: TestAgentNode, host: string, port: number) =>
  request('PUT', `/api/admin/agent-nodes/${node.id}`, { grpc_target: `https://${host}:${port}` });

const answers: UnreachableAnswer[] = [];
try {
  const agents = new Map<UnreachableState, string>();
  for (const [state, node] of nodes) agents.set(state, (await node.agent('exec sleep 1000')).id);
  for (const [state, node] of nodes) await lost[state]?.(node);
  await plane.kill();
  await plane.start();
  for (const [state, node] of nodes) if (!lost[state]) await node.until('connected');

  for (const [state, node] of nodes) {
    await disconnect[state]?.(node);
    const path = `/api/agents/${agents.get(state)}`;
    for (let i = 0; i < n; i++) {
      if (state === 'partitioned') await node.until(phases[Math.floor((i * phases.length) / n)]!);
      const action = (['stop', 'restart', 'delete'] as const)[i % 3]!;
      const began = performance.now();
      const { status, headers, body } = await (action === 'delete'
        ? request('DELETE', `${path}?force=true`, undefined, { within_ms })
        : request('POST', `${path}/${action}`, { grace_seconds: 0 }, { within_ms }));
      const ms = performance.now() - began;
      answers.push({
        state,
        action,
        status,
        body,
        pending: headers.get('x-pending'),
        ms,
      });
    }
  }
} finally {
  for (const node of nodes.values()) await node.close();
  await plane.close();
}
console.log(JSON.stringify(answers));
process.exit();
