/** Each scripted agent does what its scenario describes, and follows the protocol otherwise. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { oddFrames, type ScenarioName, scenarios } from './acp-scenarios.ts';
import type { Json } from './acp-wire.ts';
import { AgentProcess } from './agent-process.ts';

type Option = { optionId: string; kind: string };
type PermissionRequest = Json & { id: string | number; params: { options: Option[]; toolCall: Json } };

let agent: AgentProcess;

afterEach(async () => {
  agent.kill('SIGKILL');
  await agent.ended;
});

/** Starts an agent, opens a session and begins a turn. */
async function inTurn(name: ScenarioName, argument?: string): Promise<AgentProcess> {
  agent = AgentProcess.scripted(name, argument);
  expect(await agent.call('initialize')).toMatchObject({ protocolVersion: 1 });
  expect(await agent.call('session/new')).toEqual({ sessionId: 'session-1' });
  agent.send({ id: 'turn', method: 'session/prompt', params: {} });
  return agent;
}

async function permissionRequest(): Promise<PermissionRequest> {
  return (await agent.frame(({ method }) => method === 'session/request_permission')) as PermissionRequest;
}

function choose(id: string | number, optionId: string): void {
  agent.send({ id, result: { outcome: { outcome: 'selected', optionId } } });
}

async function end(): Promise<Json> {
  const { result } = await agent.frame(({ id }) => id === 'turn');
  return result as Json;
}

/** The text of the agent's messages so far. */
function agentText(): string {
  return agent.lines.map((line) => /"agent_message_chunk".*"text":"([^"]*)"/.exec(line)?.[1] ?? '').join('');
}

const tests: Record<ScenarioName, () => Promise<void>> = {
  async permission() {
    await inTurn('permission');
    choose((await permissionRequest()).id, 'yes-always');
    expect(await end()).toEqual({ stopReason: 'end_turn' });
    expect(agentText()).toBe('answered: yes-always');
    agent.send({ id: 'turn', method: 'session/prompt', params: {} });
    await permissionRequest();
    agent.send({ method: 'session/cancel', params: {} });
    expect(await end()).toEqual({ stopReason: 'cancelled' });
  },
  async acts_alone() {
    await inTurn('acts_alone');
    expect(await end()).toEqual({ stopReason: 'end_turn' });
    const updates = agent.lines.filter((line) => line.includes('"toolCallId":"call-1"'));
    expect(updates.map((line) => JSON.parse(line).params.update.status)).toEqual(['pending', 'completed']);
    expect(agent.lines.join()).not.toContain('session/request_permission');
  },
  async two_always() {
    await inTurn('two_always');
    const { id, params } = await permissionRequest();
    expect(params.options.filter(({ kind }) => kind === 'allow_always')).toHaveLength(2);
    choose(id, 'always-user');
    await end();
    expect(agentText()).toBe('answered: always-user');
  },
  async no_options() {
    await inTurn('no_options');
    const { id, params } = await permissionRequest();
    expect(params.options).toEqual([]);
    agent.send({ id, result: { outcome: { outcome: 'cancelled' } } });
    expect(await end()).toEqual({ stopReason: 'cancelled' });
  },
  async twice() {
    await inTurn('twice');
    const questions = [await permissionRequest(), await permissionRequest()];
    expect(questions.map(({ id }) => id)).toEqual([7, 7]);
    expect(questions[0]!.params.toolCall).not.toEqual(questions[1]!.params.toolCall);
    choose(7, 'yes-once');
    choose(7, 'no-once');
    await end();
    expect(agentText()).toBe('answered: yes-once, no-once');
  },
  async withdraws() {
    await inTurn('withdraws', '10');
    const { id } = await permissionRequest();
    const { params } = await agent.frame(({ method }) => method === '$/cancel_request');
    expect(params).toEqual({ requestId: id });
    agent.send({ id, error: { code: -32800, message: 'cancelled' } });
    await end();
    expect(agentText()).toBe('answered: error -32800');
  },
  async ignores_cancel() {
    await inTurn('ignores_cancel');
    agent.send({ method: 'session/cancel', params: {} });
    await agent.frame(() => agentText().includes('I ignore the cancellation'));
    agent.end();
    await expect(end()).rejects.toThrow('the agent ended');
  },
  async slow() {
    await inTurn('slow');
    await agent.frame(() => agentText() !== '');
    agent.send({ method: 'session/cancel', params: {} });
    expect(await end()).toEqual({ stopReason: 'cancelled' });
  },
  async flood() {
    await inTurn('flood');
    await end();
    expect(agentText().trim().split(' ')).toEqual(Array.from({ length: 10_000 }, (_, at) => `${at + 1}`));
    agent.end();
    expect(await agent.ended).toEqual([0, null]);
    await inTurn('flood', '2');
    await end();
    expect(agentText()).toBe('1 2 ');
  },
  async long_line() {
    await inTurn('long_line', '100000');
    await end();
    expect(agent.lines.at(-2)).toHaveLength(100_000);
  },
  async half_frame() {
    await inTurn('half_frame');
    await expect(end()).rejects.toThrow('the agent ended');
    expect(agent.lines.at(-1)).toBe('{"jsonrpc":"2.0","method":"session/upd');
    expect(await agent.ended).toEqual([1, null]);
  },
  async crash_in_turn() {
    await inTurn('crash_in_turn');
    await expect(end()).rejects.toThrow('the agent ended');
    expect(agentText()).toBe('These are my last');
    expect(await agent.ended).toEqual([null, 'SIGKILL']);
  },
  async v2_only() {
    agent = AgentProcess.scripted('v2_only');
    expect(await agent.call('initialize')).toMatchObject({ protocolVersion: 2 });
  },
  async auth() {
    agent = AgentProcess.scripted('auth');
    expect(await agent.call('initialize')).toMatchObject({ authMethods: [{ id: 'test-sign-in' }] });
    await expect(agent.call('session/new')).rejects.toMatchObject({ code: -32000 });
    await agent.call('authenticate', { methodId: 'test-sign-in' });
    expect(await agent.call('session/new')).toEqual({ sessionId: 'session-1' });
  },
  async load_fails() {
    agent = AgentProcess.scripted('load_fails');
    expect(await agent.call('initialize')).toMatchObject({ agentCapabilities: { loadSession: true } });
    await expect(agent.call('session/load', { sessionId: 'old' })).rejects.toMatchObject({ code: -32603 });
    expect(await agent.call('session/new')).toEqual({ sessionId: 'session-1' });
  },
  async banners() {
    await inTurn('banners');
    await end();
    expect(agent.lines.slice(0, 2)).toEqual(['Loading the model...', '']);
    expect(agent.lines).toContain('{broken');
    expect(agentText()).toBe('one two');
  },
  async answers_nothing() {
    await inTurn('answers_nothing');
    await end();
    const ids = agent.lines.map((line) => (JSON.parse(line) as Json).id);
    expect(ids).toEqual(['initialize', 'session/new', 'nobody-sent-this', 4711, null, 'nor-this', 'turn']);
  },
  async unknown_kinds() {
    await inTurn('unknown_kinds');
    for (const expected_method of ['_made_up/request', 'fs/read_text_file', 'terminal/create']) {
      const { id } = await agent.frame(({ method }) => method === expected_method);
      agent.send({ id, error: { code: -32601, message: 'Method not found' } });
    }
    await end();
    expect(agentText()).toBe('answered: error -32601, error -32601, error -32601');
    expect(agent.lines.filter((line) => line.includes('made_up_update'))).toHaveLength(1);
  },
  async elicits() {
    await inTurn('elicits');
    const form = await agent.frame(({ method }) => method === 'elicitation/create');
    expect(form.params).toMatchObject({ sessionId: 'session-1', mode: 'form' });
    agent.send({ id: form.id, result: { action: 'accept', content: { name: 'v1' } } });
    expect(await end()).toEqual({ stopReason: 'end_turn' });
    expect(agent.lines.at(-2)).toContain(JSON.stringify(JSON.stringify({ name: 'v1' })).slice(1, -1));
    expect(agent.lines.join()).not.toContain('elicitation/complete');
  },
  async sends_updates() {
    const update = (text: string) => ({ sessionUpdate: 'agent_message_chunk', content: { text } });
    const folder = await mkdtemp(join(tmpdir(), 'svc-agent-'));
    const until_file = join(folder, 'go-on');
    const permission = { toolCall: {}, options: [] };
    const updates = [update('a'), { sleep: 1 }, permission, update('b'), { until_file }, update('c')];
    const endless = { ...update('d'), every_ms: 1 };
    await inTurn('sends_updates', JSON.stringify([[...updates, endless]]));
    const { id, params } = await permissionRequest();
    expect(params.options).toEqual([]);
    expect(agentText()).toBe('a');
    choose(id, 'any');
    const ended = end();
    await expect.poll(agentText).toBe('ab');
    await setTimeout(50);
    expect(agentText()).toBe('ab');
    await writeFile(until_file, '');
    await expect.poll(agentText).toMatch(/^abcddd/);
    agent.send({ method: 'session/cancel', params: {} });
    expect(await ended).toEqual({ stopReason: 'cancelled' });
    await rm(folder, { recursive: true });
  },
  async writes() {
    const folder = await mkdtemp(join(tmpdir(), 'svc-agent-'));
    await writeFile(join(folder, 'lines'), '[1,\n{"in":"SESSION"}\n');
    await inTurn('writes', join(folder, 'lines'));
    await agent.frame((frame) => frame.in === 'session-1');
    await rm(folder, { recursive: true });
    agent.send({ method: 'session/cancel', params: {} });
    expect(await end()).toEqual({ stopReason: 'cancelled' });
    expect(agent.lines).toContain('[1,');
  },
  async calls() {
    await inTurn('calls', 'printf hello');
    expect(await end()).toEqual({ stopReason: 'end_turn' });
    expect(agentText()).toBe('hello');
  },
  async subagents() {
    await inTurn('subagents');
    const { id, params } = await permissionRequest();
    expect(params).toMatchObject({ sessionId: 'child-1' });
    choose(id, 'yes-once');
    expect(await end()).toEqual({ stopReason: 'end_turn' });
    const sessions = agent.lines.map((line) => JSON.parse(line).params?.sessionId);
    expect(new Set(sessions.filter(Boolean))).toEqual(
      new Set(['session-1', 'child-1', 'child-2', 'unknown-1']),
    );
    expect(agentText()).toMatch(/answered: yes-once$/);
  },
  async subagent_calls() {
    await inTurn('subagent_calls');
    const { id, params } = await permissionRequest();
    const mark = { _meta: { claudeCode: { parentToolUseId: 'task-1' } } };
    expect(params).toMatchObject({ sessionId: 'session-1', toolCall: mark });
    choose(id, 'no-once');
    expect(await end()).toEqual({ stopReason: 'end_turn' });
    expect(agentText()).toMatch(/answered: no-once$/);
  },
  async numbers() {
    await inTurn('numbers');
    await end();
    expect(agent.lines.slice(2, -1)).toEqual(oddFrames('session-1'));
    expect(oddFrames('x').every((frame) => JSON.stringify(JSON.parse(frame)) !== frame)).toBe(true);
  },
};

for (const [name, { description }] of Object.entries(scenarios)) {
  test(`${name} ${description}`, () => tests[name as ScenarioName]());
}
