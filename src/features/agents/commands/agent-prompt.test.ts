import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { AcpConfig } from '../../../acp/state.ts';
import { problems } from '../../../core/problem.ts';
import type { Handlers } from '../../../server/call.ts';
import type { HttpServer } from '../../../server/server.ts';
import { agentRecord, time } from '../../../testing/agent-record.ts';
import { type RunOptions, run } from '../../../testing/cli.ts';
import { frame, status } from '../../../testing/event-stream.ts';
import { openFakeHttp, ROOT_TOKEN } from '../../../testing/http.ts';
import type { Prompt } from '../../conversations/rules.ts';

let home: string;
let server: HttpServer | null;
let env: Record<string, string>;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-talk-'));
  server = null;
});
afterEach(async () => {
  await server?.drain();
  rmSync(home, { recursive: true, force: true });
});

const running = agentRecord({ status: 'running', session_id: 'ses_1', last_seq: 4 });

async function open(handlers: Partial<Handlers>): Promise<void> {
  server = await openFakeHttp({
    listAgents: () => ({ items: [running] }),
    getAgent: () => running,
    ...handlers,
  });
  env = { SVC_URL: server.url, SVC_TOKEN: ROOT_TOKEN };
}

const cli = (argv: string[], options: Partial<RunOptions> = {}) => run(argv, { home, env, ...options });

const prompt = (fields: Partial<Prompt>): Prompt => ({
  id: 'prm_1',
  content: [{ type: 'text', text: 'first' }],
  state: 'sent',
  stop_reason: null,
  created_by: null,
  created_at: time,
  sent_at: null,
  ended_at: null,
  ...fields,
});

test.each([
  ['promptAgent', ['prompt', 'one', 'do it']],
  ['sendInput', ['agents', 'input', 'one', 'text']],
] as const)('an agent that does not run: %s says how to start it', async (operation, argv) => {
  await open({
    [operation]: () => {
      throw problems.agentNotRunning();
    },
  });
  const stderr = 'svc: agent is not running\nsvc: start it: svc agents start one\n';
  expect(await cli([...argv])).toMatchObject({ code: 1, stdout: '', stderr });
});

describe('prompt', () => {
  test('sends its arguments or standard input, and prints the prompt’s id', async () => {
    const bodies: unknown[] = [];
    await open({
      promptAgent: ({ body }) => {
        bodies.push(body);
        return { prompt_id: 'prm_1', queued: bodies.length > 1 };
      },
    });
    expect(await cli(['prompt', 'one', 'do', 'it'])).toMatchObject({
      code: 0,
      stdout: 'prm_1\n',
      stderr: '',
    });
    const waiting = await cli(['prompt', 'one', '-'], { input: 'line one\nline two\n' });
    expect(waiting).toMatchObject({ stdout: 'prm_1\n', stderr: 'the prompt is queued\n' });
    expect(bodies).toEqual([
      [{ type: 'text', text: 'do it' }],
      [{ type: 'text', text: 'line one\nline two' }],
    ]);
    expect(JSON.parse((await cli(['prompt', 'one', 'x', '--json'])).stdout)).toEqual({
      prompt_id: 'prm_1',
      queued: true,
    });
    expect((await cli(['prompt', 'one'])).code).toBe(2);
    const odd = await cli(['prompt', 'one', '-'], { input: Buffer.from([0xff]) });
    expect(odd).toMatchObject({ code: 1, stderr: 'svc: standard input is not UTF-8 text\n' });
  });

  const sent = (seq: number, id = 'prm_1', args = 'do it') =>
    acp(seq, 'to_agent', {
      id,
      method: 'session/prompt',
      params: { prompt: [{ type: 'text', text: args }] },
    });
  const messageEvent = (seq: number, text: string) => {
    const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } };
    return acp(seq, 'from_agent', { method: 'session/update', params: { update } });
  };
  const ended = (seq: number, result: object, id = 'prm_1') =>
    acp(seq, 'from_agent', { id, ...result }, { response_to: id });

  function acp(seq: number, direction: string, payload: object, more = {}): string {
    return frame(seq, { type: 'acp_event', direction, payload, ...more });
  }

  async function wait(frames: string, handlers: Partial<Handlers> = {}, argv: string[] = []) {
    let position: unknown;
    await open({
      promptAgent: () => ({ prompt_id: 'prm_1', queued: false }),
      followAgent: (call) => {
        position = call.query.after;
        call.hijack().writeHead(200).write(frames);
        return undefined;
      },
      ...handlers,
    });
    const ran = await cli(['prompt', 'one', 'do it', '--wait', ...argv]);
    return { ...ran, position };
  }

  test('--wait shows the conversation until the turn of this prompt ends', async () => {
    const before = ended(5, { result: { stopReason: 'refusal' } }, 'prm_0');
    const turn =
      sent(6) +
      messageEvent(7, 'I ') +
      messageEvent(8, 'did.') +
      ended(9, { result: { stopReason: 'end_turn' } });
    const ran = await wait(before + turn);
    expect(ran).toMatchObject({
      code: 0,
      position: 4,
      stdout: '┃ turn     ended: refusal\n> do it\nI did.\n┃ turn     ended: end_turn\n',
      stderr: '',
    });
  });

  test('--wait --json prints the events', async () => {
    const ran = await wait(sent(6) + ended(7, { result: { stopReason: 'end_turn' } }), {}, ['--json']);
    expect(ran.stdout.split('\n').map((line) => line && JSON.parse(line).seq)).toEqual([6, 7, '']);
  });

  test('--wait continues after the agent has accepted the prompt, if another frame ends the turn', async () => {
    const taken = acp(
      6,
      'from_agent',
      { id: 'prm_1', result: { messageId: 'm' } },
      { response_to: 'prm_1', accepted: true },
    );
    const rests = (stop_reason: string) => {
      const update = { sessionUpdate: 'state_update', state: 'idle', stopReason: stop_reason };
      const turn_ended = { prompt_id: 'prm_1', stop_reason };
      return acp(8, 'from_agent', { method: 'session/update', params: { update } }, { turn_ended });
    };
    const turn = await wait(sent(5) + taken + messageEvent(7, 'Done.') + rests('end_turn'));
    expect(turn).toMatchObject({ code: 0, stdout: '> do it\nDone.\n┃ turn     ended: end_turn\n' });
    await server?.drain();
    expect(await wait(sent(5) + taken + rests('cancelled'))).toMatchObject({ code: 3 });
  });

  test('--wait exits with 3 for every other end, and prints the reason', async () => {
    const ends = async (frames: string) => {
      const { code, stderr } = await wait(frames);
      await server?.drain();
      return `${code} ${stderr}`;
    };
    const args = (end: string) => `3 svc: the turn of agent agt_1 ended: ${end}\n`;
    expect(await ends(ended(6, { result: { stopReason: 'max_tokens' } }))).toBe(args('max_tokens'));
    expect(await ends(ended(6, { error: { code: 1, message: 'no\x1bway' } }))).toBe(args('no\\x1bway'));
    expect(await ends(sent(6) + status(7, 'failed'))).toBe(args('the agent ended'));
    expect(await ends(status(7, 'failed'))).toBe(args('the agent ended before it received the prompt'));
    const lost = { type: 'error', code: 'turn_lost', error: 'it is lost', prompt_id: 'prm_1' };
    const note = '-- turn_lost: it is lost --\n';
    expect(await ends(sent(6) + frame(7, lost))).toBe(`3 ${note}${args('it is lost').slice(2)}`);
  });

  test('--wait ends when the prompt is removed, and after the timeout', async () => {
    const heartbeat = 'id: 4\nevent: heartbeat\ndata: {"type":"heartbeat","ts":1}\n\n';
    const timed_out = await wait(heartbeat, { listPrompts: () => [] });
    expect(timed_out).toMatchObject({ code: 3, stderr: expect.stringContaining('the prompt was removed') });
    await server?.drain();
    const late = await wait(sent(6), {}, ['--timeout', '100ms']);
    expect(late).toMatchObject({ code: 124, stderr: 'svc: the turn of agent agt_1 is still running\n' });
  });
});

test('prompt --wait repeats the reads of its queue and its agent while the plane restarts', async () => {
  const drained = new Set<string>();
  const once = <T>(name: string, answer: T): T => {
    if (drained.has(name)) return answer;
    drained.add(name);
    throw problems.draining();
  };
  await open({
    promptAgent: () => ({ prompt_id: 'prm_1', queued: false }),
    listPrompts: () => once('listPrompts', []),
    getAgent: () => once('getAgent', running),
    followAgent: (call) => {
      call.hijack().writeHead(200).write('id: 4\nevent: heartbeat\ndata: {"type":"heartbeat","ts":1}\n\n');
      return undefined;
    },
  });
  expect(await cli(['prompt', 'one', 'do it', '--wait'])).toMatchObject({
    code: 3,
    stderr: 'svc: the turn of agent agt_1 ended: the prompt was removed\n',
  });
  expect([...drained]).toEqual(['listPrompts', 'getAgent']);
});

test('create sets the protocol and the first prompt', async () => {
  let body: unknown;
  await open({
    createAgent: (call) => {
      body = call.body;
      return { location: '/x', body: running };
    },
  });
  const argv = ['agents', 'create', 'n', '--protocol', 'acp', '--prompt', '-', '--', 'my-agent'];
  expect((await cli(argv, { input: 'do it\n' })).code).toBe(0);
  expect(body).toMatchObject({ protocol: 'acp', prompt: 'do it', argv: ['my-agent'] });
});

test('lists, edits and removes queued prompts', async () => {
  const calls: unknown[] = [];
  await open({
    listPrompts: () => [prompt({}), prompt({ id: 'prm_2', state: 'queued', content: [{ type: 'image' }] })],
    editPrompt: ({ params, body }) => {
      calls.push([params.prompt_id, body]);
      return prompt({});
    },
    deletePrompt: ({ params }) => {
      calls.push(params.prompt_id);
      return undefined;
    },
  });
  const listed = await cli(['agents', 'prompts', 'one']);
  expect(listed.stdout).toBe(`prm_1\tsent\t${time}\tfirst\nprm_2\tqueued\t${time}\t[image]\n`);
  expect((await cli(['agents', 'prompts', 'one', '--edit', 'prm_2', 'other', 'words'])).code).toBe(0);
  expect((await cli(['agents', 'prompts', 'one', '--remove', 'prm_2'])).code).toBe(0);
  expect(calls).toEqual([['prm_2', [{ type: 'text', text: 'other words' }]], 'prm_2']);
  for (const wrong of [['words'], ['--edit', 'prm_2'], ['--edit', 'a', '--remove', 'b', 'words']]) {
    expect((await cli(['agents', 'prompts', 'one', ...wrong])).code).toBe(2);
  }
});

test('cancel cancels the turn', async () => {
  await open({ cancelTurn: () => running });
  expect(await cli(['agents', 'cancel', 'one'])).toMatchObject({
    code: 0,
    stdout: '',
    stderr: 'cancelled the turn of agt_1\n',
  });
});

describe('config', () => {
  const config = {
    phase: 'ready',
    protocol_version: 1,
    agent: { name: 'demo', title: 'Demo\x1b', version: '1' },
    title: 'Tidying',
    modes: {
      currentModeId: 'ask',
      availableModes: [
        { id: 'ask', name: 'Ask' },
        { id: 'auto', name: 'Auto' },
      ],
    },
    config_options: [
      {
        id: 'model',
        name: 'Model',
        type: 'select',
        currentValue: 'big',
        options: [
          {
            group: 'g',
            name: 'G',
            options: [
              { value: 'big', name: 'B' },
              { value: 'small', name: 'S' },
            ],
          },
        ],
      },
      { id: 'loud', name: 'Loud', type: 'boolean', currentValue: false },
    ],
    commands: [{ name: 'fail', description: 'Fails' }],
    plan: [{ content: 'one', priority: 'high', status: 'completed' }],
    usage: { used: 1, size: 9 },
    subagents: [
      {
        ...{ id: 's1', has_session: true, parent_id: null, name: 'Explore\x1b', description: 'Find it' },
        ...{ status: 'idle', stop_reason: 'end_turn' },
      },
    ],
    capabilities: { load: true, resume: false, image: true, audio: false, embedded_context: false },
    auth_methods: [{ id: 'key', name: 'A key', description: null, type: 'agent' }],
  } as AcpConfig;

  test('prints all settings and offers of the agent', async () => {
    await open({ getAgentConfig: () => config });
    expect((await cli(['agents', 'config', 'one'])).stdout).toBe(`phase     ready
agent     Demo\\x1b  1
acp       1
title     Tidying
mode      ask  (ask, auto)
options   model = big  (big, small)  Model
          loud = false  (true, false)  Loud
commands  /fail  Fails
plan      [x] one
subagent  Explore\\x1b  idle (end_turn)  Find it
usage     1 of 9 tokens
takes     text, image
sign-in   key  A key
`);
    expect(JSON.parse((await cli(['agents', 'config', 'one', '--json'])).stdout)).toEqual(config);
  });

  test('marks the protocol version as a preview', async () => {
    await open({ getAgentConfig: () => ({ ...config, protocol_version: 2 }) });
    expect((await cli(['agents', 'config', 'one'])).stdout).toContain('\nacp       2 (preview)\n');
  });

  test('sends each option in its own type', async () => {
    let body: unknown;
    await open({
      getAgentConfig: () => config,
      setAgentConfig: (call) => {
        body = call.body;
        return config;
      },
    });
    const argv = ['agents', 'config', 'one', '--mode', 'auto', '--set', 'model=small', '--set', 'loud=true'];
    expect((await cli(argv)).code).toBe(0);
    expect(body).toEqual({ mode_id: 'auto', options: { model: 'small', loud: true } });
    const unknown = await cli(['agents', 'config', 'one', '--set', 'nope=1']);
    expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining('has no option nope') });
    expect((await cli(['agents', 'config', 'one', '--set', 'nope'])).code).toBe(2);
  });

  test('authenticate lists the methods if the given one is unknown', async () => {
    await open({
      getAgentConfig: () => config,
      authenticateAgent: ({ body }) => {
        if (body.method_id !== 'key') throw problems.unknownAuthMethod();
        return config;
      },
    });
    expect(await cli(['agents', 'authenticate', 'one', 'key'])).toMatchObject({
      code: 0,
      stderr: 'the agent is ready\n',
    });
    expect(await cli(['agents', 'authenticate', 'one', 'x'])).toMatchObject({
      code: 1,
      stderr: 'svc: unknown method_id\nsvc: key  A key\n',
    });
  });
});
