/** A run of a team with the whole program: members on the main node and on a remote node, and a kill of the plane. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { type Agent, isFinal } from '../src/features/agents/rules.ts';
import type { Run } from '../src/features/runs/rules/run.ts';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { run as svc } from '../src/testing/cli.ts';
import { retryWhileUnreachable } from '../src/testing/conversation.ts';
import { SVC } from '../src/testing/plane.ts';
import { sharedPlane } from '../src/testing/shared-plane.ts';

const share = sharedPlane({ env: WITH_NODES });

test('a run on two nodes executes each step once, even if the plane is killed', {
  timeout: 120_000,
}, async () => {
  const plane = await share();
  let node: TestAgentNode | null = null;
  try {
    node = await TestAgentNode.open(plane);
    const note = 'echo "$SVC_STEP_KEY" >>done; command -v svc >/dev/null && cat "$SVC_STEP_INPUT"';
    const later = `until [ -e go ]; do sleep 0.05; done; ${note}`;
    const spec = {
      members: [
        { member_id: 'near', agent: { command: note, workdir: plane.work } },
        { member_id: 'far', agent: { command: later, workdir: node.work, node_id: node.id } },
      ],
      steps: [
        { step_key: 'a', member_id: 'near' },
        { step_key: 'b', member_id: 'far', depends_on: ['a'] },
        { step_key: 'c', member_id: 'near', depends_on: ['b'] },
      ],
    };
    const team = await plane.client.call('createTeam', { body: { name: 'two places', spec } });
    const params = { team_id: team.id };
    const { id: run_id } = await plane.client.call('createRun', { params, body: { input: { n: 1 } } });
    const path = { params: { ...params, run_id } };
    const step = async (key: string) => {
      const steps = await retryWhileUnreachable(() => plane.client.call('listSteps', path));
      return steps.find(({ step_key }) => step_key === key)!;
    };
    while ((await step('b')).status !== 'running') await sleep(20);
    await plane.kill();
    await plane.start();
    await writeFile(join(node.work, 'go'), '');
    let run: Run;
    do {
      await sleep(20);
      run = await retryWhileUnreachable(() => plane.client.call('getRun', path));
    } while (run.status === 'running');
    expect(run).toMatchObject({ status: 'completed', error: null });
    const a = { run_input: { n: 1 }, input: null, needs: {} };
    const b = { ...a, needs: { a } };
    expect(run.output).toEqual({ c: { ...a, needs: { b } } });
    expect(await readFile(join(plane.work, 'done'), 'utf8')).toBe('a\nc\n');
    const { agent_id } = await step('b');
    const agent = await plane.client.call('getAgent', { params: { agent_id: agent_id! } });
    expect(agent).toMatchObject({ team_id: team.id, run_id, member_id: 'far', node_id: node.id });
    expect(await readFile(join(node.work, 'done'), 'utf8')).toBe('b\n');
  } finally {
    await node?.close();
  }
});

test('agents that the end of their run stopped are shown as such, and the streams say so', {
  timeout: 40_000,
}, async () => {
  const plane = await share();
  const { client } = plane;
  const argv = [SVC, 'demo-agent', '--speed', '0', '--mode', 'auto', '--state', join(plane.folder, 'demo')];
  const spec = {
    members: [
      { member_id: 'ann', agent: { argv, protocol: 'acp' as const, workdir: plane.work } },
      { member_id: 'bob', agent: { command: 'true', workdir: plane.work } },
    ],
    steps: [
      { step_key: 'a', member_id: 'ann', prompt: 'Say hello.' },
      { step_key: 'b', member_id: 'bob' },
    ],
  };
  const { id: team_id } = await client.call('createTeam', { body: { name: 'pair', spec } });
  const run = await client.call('createRun', { params: { team_id }, body: {} });
  const stop = new AbortController();
  const ends = new Set<string>();
  for await (const { event, data } of client.follow('followAll', {
    query: { after: 0 },
    signal: stop.signal,
  })) {
    if (event !== 'agent') continue;
    const { member_id, status, stopped_by_run, ...agent } = data.record as Agent;
    if (agent.team_id === team_id && isFinal(status)) ends.add(`${member_id} ${status} ${stopped_by_run}`);
    if (ends.size === 2) stop.abort();
  }
  expect([...ends].sort()).toEqual(['ann cancelled completed', 'bob completed null']);
  const options = { home: plane.folder, env: { SVC_URL: plane.url, SVC_TOKEN: plane.token } };
  const list = await svc(['agents', 'ls', '--team', 'pair'], options);
  const statuses = list.stdout.split('\n').flatMap((line) => line.split('\t').slice(1, 3).join(': ') || []);
  expect(statuses.sort()).toEqual(['pair-ann: run completed', 'pair-bob-b: completed']);
  const { members } = await client.call('listRunMembers', { params: { run_id: run.id } });
  const ann = members.find(({ member_id }) => member_id === 'ann')!;
  expect(ann.status).toBe('completed');
  const shown = await svc(['agents', 'show', ann.agent_id!], options);
  expect(shown.stdout).toMatch(/^status +run completed$/m);
  const json = await svc(['agents', 'show', ann.agent_id!, '--json'], options);
  expect(JSON.parse(json.stdout)).toMatchObject({ status: 'cancelled', stopped_by_run: 'completed' });
});
