/**
 * Actor methods in a team, with the real programs: members on the main node and on a remote node communicate through
 * `svc actor` and tools, from the sessions of their agents. No shared secret is configured.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { isStepOver, type Run, type Step } from '../src/features/runs/rules/run.ts';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { AgentShell, SHELL } from '../src/testing/agent-shell.ts';
import { firstOf, longTest } from '../src/testing/long.ts';
import { TestPlane } from '../src/testing/plane.ts';

const ACP_AGENT = fileURLToPath(new URL('../src/testing/acp-agent.ts', import.meta.url));
const STEP_MS_MAX = 100_000;
const TOOL_USER = fileURLToPath(new URL('agents/tool-user.mjs', import.meta.url));

let plane: TestPlane;
let node: TestAgentNode;
afterEach(async () => {
  await node?.close();
  await plane?.close();
});

async function open(mode: string): Promise<void> {
  plane = await TestPlane.open({ env: WITH_NODES });
  node = await TestAgentNode.open(plane, { env: { SVC_INTERNAL_GRPC_SECURITY_MODE: mode } });
}

async function begin(spec: object): Promise<Run> {
  const { id: team_id } = await plane.client.call('createTeam', {
    body: { name: 'walk', spec: spec as never },
  });
  return plane.client.call('createRun', { params: { team_id }, body: { input: {} } });
}

const pathOf = ({ team_id, id: run_id }: Run) => ({ params: { team_id, run_id } });

/** Throws with the step if it ends otherwise, or does not get there, because a timeout says nothing about it. */
async function stepWhen(run: Run, key: string, status: Step['status']): Promise<Step> {
  const until_ms = performance.now() + STEP_MS_MAX;
  for (;;) {
    const steps = await plane.client.call('listSteps', pathOf(run));
    const step = steps.find(({ step_key }) => step_key === key)!;
    if (step.status === status) return step;
    if (isStepOver(step) || performance.now() > until_ms)
      throw new Error(`step ${key} is not ${status}: ${JSON.stringify(step)}`);
    await sleep(50);
  }
}

async function shellIn(where: { work: string }, name: string): Promise<AgentShell> {
  const workdir = join(where.work, name);
  await mkdir(workdir);
  return new AgentShell(workdir);
}

/** Runs a command of `svc actor` as a member, and returns its result. It must succeed. */
async function runAs(by: AgentShell, command: string) {
  const { output, exit_code } = await by.run(`svc actor ${command}`);
  expect(exit_code, `${command}: ${output}`).toBe(0);
  return JSON.parse(output);
}

/** Calls `whoami` from a member's session with another token. */
async function whoamiWith(by: AgentShell, token: string) {
  const there = '"$(dirname "$SVC_ACTOR_TOKEN_FILE")/actor.json"';
  return by.run(`cp ${there} .\necho ${token} >token\nSVC_ACTOR_TOKEN_FILE=$PWD/token svc actor whoami`);
}

async function expectRefusal(by: AgentShell, command: string, message: string): Promise<void> {
  expect(await by.run(`svc actor ${command} 2>&1 >/dev/null`)).toEqual({
    output: `svc: ${message}`,
    exit_code: 1,
  });
}

/** Writes the token to the step output, because the agent's output would show it redacted. */
const GIVES_TOKEN = 'cat "$SVC_ACTOR_TOKEN_FILE" >"$SVC_STEP_OUTPUT"';

test.each(firstOf(1, ['mtls', 'tls']))(
  'in %s, a member on a remote node takes part in its run through svc actor, within its rights',
  { timeout: 240_000 },
  async (mode) => {
    await open(mode);
    const lead = await shellIn(plane, 'lead');
    const hand = await shellIn(node, 'hand');
    const shell = (at: AgentShell, node_id: string) => ({ command: SHELL, workdir: at.workdir, node_id });
    const requesting_agent = {
      argv: [process.execPath, ACP_AGENT, 'permission'],
      protocol: 'acp',
      workdir: plane.work,
    };
    const run = await begin({
      leader_member_id: 'lead',
      review_route: 'leader',
      members: [
        { member_id: 'lead', agent: shell(lead, 'main') },
        { member_id: 'hand', agent: shell(hand, node.id) },
        { member_id: 'asker', agent: requesting_agent },
        { member_id: 'guest', agent: { command: GIVES_TOKEN, workdir: plane.work } },
      ],
      steps: [
        { step_key: 'plan', member_id: 'lead' },
        { step_key: 'work', member_id: 'hand' },
        { step_key: 'ask', member_id: 'asker', prompt: 'Ask.' },
        { step_key: 'brief', member_id: 'guest' },
      ],
    });
    const id = (member_id: string) => `${member_id}@${run.team_id}`;

    expect(await runAs(hand, 'whoami')).toMatchObject({
      ...{ actor_id: id('hand'), node_id: node.id, role: 'worker', team_id: run.team_id, run_id: run.id },
    });
    const { members } = await runAs(hand, 'team-members');
    expect(members.map((one: { actor_id: string; role: string }) => [one.actor_id, one.role])).toEqual([
      ...[
        [id('lead'), 'leader'],
        [id('hand'), 'worker'],
        [id('asker'), 'worker'],
        [id('guest'), 'worker'],
      ],
      ['user:ana', 'human'],
    ]);
    const { steps } = await runAs(hand, 'step-list');
    expect(steps.map(({ step_key }: Step) => step_key)).toEqual(['plan', 'work', 'ask', 'brief']);

    const sent = await runAs(lead, `send --to hand --payload '{"text": "How far?"}'`);
    expect(await runAs(hand, 'inbox')).toMatchObject({
      messages: [{ id: sent.id, from_actor_id: id('lead'), payload: { text: 'How far?' } }],
    });
    expect(await runAs(hand, `ack --message-id ${sent.id}`)).toMatchObject({ status: 'acknowledged' });
    expect(await runAs(hand, 'inbox')).toEqual({ messages: [] });
    const report = await runAs(hand, `send --to leader --payload '{"text": "Done."}'`);
    const { messages } = await runAs(lead, 'inbox');
    expect(messages.find((one: { id: number }) => one.id === report.id)).toMatchObject({
      ...{ from_actor_id: id('hand'), payload: { text: 'Done.' } },
    });

    await expectRefusal(hand, `ack --message-id ${report.id}`, 'message not found');
    await expectRefusal(hand, 'inbox --actor-id lead', 'not allowed to act as lead');
    await expectRefusal(hand, `inbox --actor-id ${id('lead')}`, `not allowed to act as ${id('lead')}`);
    await expectRefusal(hand, 'step-add --step-key more --member hand --prompt more', 'not allowed');
    await expectRefusal(hand, 'step-complete --step-key plan', 'not allowed');
    await expectRefusal(hand, 'run-complete', 'not allowed');

    await stepWhen(run, 'ask', 'running');
    let reviews: { id: string }[] = [];
    while (reviews.length === 0) ({ reviews } = await runAs(lead, 'permission-review-list'));
    const answer = `permission-review-respond --request-id ${reviews[0]!.id} --decision allow`;
    await expectRefusal(hand, answer, 'worker-originated permission review cannot route to worker');
    expect(await runAs(lead, answer)).toMatchObject({ status: 'answered', answered_by: id('lead') });
    expect(await stepWhen(run, 'ask', 'completed')).toMatchObject({ output: 'answered: yes-once' });

    const unauthorized = { output: 'svc: unauthorized', exit_code: 4 };
    const { output: token } = await lead.run('cat "$SVC_ACTOR_TOKEN_FILE"');
    expect(await whoamiWith(hand, token)).toEqual(unauthorized);
    const { output: over } = await stepWhen(run, 'brief', 'completed');
    expect(await whoamiWith(lead, String(over).trim())).toEqual(unauthorized);

    await hand.stop();
    await stepWhen(run, 'work', 'completed');
    // The end of the run also ends this session, perhaps before it prints the answer.
    await lead.start(`svc actor run-complete --output '{"text": "All is done."}'`);
    await expect
      .poll(() => plane.client.call('getRun', pathOf(run)), { timeout: STEP_MS_MAX })
      .toMatchObject({ status: 'completed', output: { text: 'All is done.' } });
  },
);

longTest(
  'an ACP member on a remote node reads and sends mail with the team tools',
  {
    timeout: 120_000,
  },
  async () => {
    await open('mtls');
    const calls = [
      ['inbox', {}],
      ['send', { to: 'leader', payload: { text: 'By a tool.' } }],
    ];
    const agent = { argv: [process.execPath, TOOL_USER, JSON.stringify(calls)], protocol: 'acp' };
    const hello = `svc actor send --to far --payload '{"text": "Hello."}'`;
    const run = await begin({
      leader_member_id: 'near',
      members: [
        { member_id: 'near', agent: { command: hello, workdir: plane.work } },
        { member_id: 'far', agent: { ...agent, workdir: node.work, node_id: node.id } },
      ],
      steps: [
        { step_key: 'greet', member_id: 'near' },
        { step_key: 'use', member_id: 'far', depends_on: ['greet'], prompt: 'Use them.' },
      ],
    });
    const { agent_id, output } = await stepWhen(run, 'use', 'completed');
    const [inbox, sent] = JSON.parse(output as string);
    expect(inbox).toMatchObject({
      messages: [{ from_actor_id: `near@${run.team_id}`, payload: { text: 'Hello.' } }],
    });
    expect(sent).toMatchObject({ to_actor_id: `near@${run.team_id}`, payload: { text: 'By a tool.' } });
    const opened = ({ data }: { data: Record<string, unknown> }) => data.method === 'session/new';
    const frames = await plane.frames(agent_id!, (all) => all.some(opened));
    expect(frames.find(opened)!.data).toMatchObject({
      payload: { params: { mcpServers: [{ name: 'svc', command: 'svc', args: ['mcp', '--actor'] }] } },
    });
  },
);
