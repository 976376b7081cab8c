import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { methods, type SessionUpdate, type SetSessionConfigOptionRequest } from '@agentclientprotocol/sdk';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { limits } from '../limits.ts';
import { choose, Driven, type DriveOptions } from './testing.ts';

let dir: string;
let cwd: string;
let state_dir: string;
let driven: Driven[] = [];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'svc-demo-'));
  cwd = join(dir, 'work');
  state_dir = join(dir, 'state/svc-demo');
  await mkdir(cwd);
});

afterEach(async () => {
  await Promise.all(driven.map((demo) => demo.close().catch(() => {})));
  driven = [];
  await rm(dir, { recursive: true });
});

function drive(options: Partial<DriveOptions> = {}): Driven {
  const demo = new Driven({ state_dir, ...options });
  driven.push(demo);
  return demo;
}

function note(): Promise<string | null> {
  return readFile(join(cwd, 'svc-demo.md'), 'utf8').catch(() => null);
}

/** Kinds in order, without repetitions. */
function course(updates: SessionUpdate[]): string[] {
  const kinds = updates.map(({ sessionUpdate }) => sessionUpdate);
  return kinds.filter((kind, at) => kind !== kinds[at - 1]);
}

function diffOf(demo: Driven, at = 0) {
  const content = demo.requests[at]?.toolCall.content?.[0];
  if (content?.type !== 'diff') throw new Error('no diff was shown');
  return content;
}

describe('a turn', () => {
  test('runs from a message to the end, and writes the allowed change as it was shown', async () => {
    const demo = drive();
    const session = await demo.open(cwd);
    expect(await demo.prompt(session, '\n  Fix the flaky test  \nand more')).toBe('end_turn');
    expect(course(demo.updates)).toEqual([
      'available_commands_update',
      'agent_message_chunk',
      'agent_thought_chunk',
      'plan',
      'tool_call',
      'tool_call_update',
      'plan',
      'tool_call',
      'tool_call_update',
      'plan',
      'agent_message_chunk',
      'plan',
      'usage_update',
      'session_info_update',
    ]);
    expect(demo.messageText()).toContain('“Fix the flaky test”');
    expect(demo.requests[0]?.options.map(({ kind }) => kind)).toEqual([
      'allow_once',
      'allow_always',
      'reject_once',
    ]);
    expect(diffOf(demo)).toMatchObject({ path: join(cwd, 'svc-demo.md'), oldText: null });
    expect(await note()).toBe(diffOf(demo).newText);
    expect(demo.of('plan').map(({ entries }) => entries.map(({ status }) => status[0]).join(''))).toEqual([
      'ppp',
      'ipp',
      'cip',
      'cci',
      'ccc',
    ]);
    expect(demo.of('session_info_update').at(-1)?.title).toBe('Fix the flaky test');

    const before = await note();
    await demo.prompt(session, 'Once more');
    expect(diffOf(demo, 1).oldText).toBe(before);
    expect(await note()).toBe(diffOf(demo, 1).newText);
    const ids = demo.of('tool_call').map(({ toolCallId }) => toolCallId);
    expect(new Set(ids).size).toBe(4);
  });

  test('writes nothing if the answer is a rejection, an unknown option or an error, and says so', async () => {
    const demo = drive();
    const session = await demo.open(cwd);
    const refuse = () => Promise.reject(new Error('not now'));
    for (const answer of [choose('demo-reject'), choose('never-offered'), refuse]) {
      demo.answer = answer;
      demo.updates.length = 0;
      expect(await demo.prompt(session, 'Write')).toBe('end_turn');
      expect(await note()).toBe(null);
      expect(demo.messageText()).toContain('Nothing was written');
      expect(demo.of('tool_call_update').at(-1)?.status).toBe('failed');
    }
  });

  test('ends with the answer cancelled', async () => {
    const demo = drive({ answer: async () => ({ outcome: { outcome: 'cancelled' } }) });
    expect(await demo.prompt(await demo.open(cwd), 'Write')).toBe('cancelled');
    expect(await note()).toBe(null);
  });

  test('ends with session/cancel while the question is open, and withdraws the question', async () => {
    const taken_back = Promise.withResolvers<void>();
    const demo = drive();
    const session = await demo.open(cwd);
    demo.answer = (_asked, signal) => {
      signal.addEventListener('abort', () => taken_back.resolve());
      void demo.agent.notify(methods.agent.session.cancel, { sessionId: session });
      return new Promise(() => {});
    };
    expect(await demo.prompt(session, 'Write')).toBe('cancelled');
    await taken_back.promise;
    demo.answer = choose('demo-once');
    expect(await demo.prompt(session, 'Write after all')).toBe('end_turn');
    expect(await note()).toContain('Write after all');
  });

  test('asks once for “always” in a session, also when another process continues it', async () => {
    const demo = drive({ answer: choose('demo-always') });
    const session = await demo.open(cwd);
    await demo.prompt(session, 'one');
    await demo.prompt(session, 'two');
    expect(demo.requests).toHaveLength(1);
    const later = drive();
    await later.initialize();
    await later.agent.request(methods.agent.session.resume, { sessionId: session, cwd });
    await later.prompt(session, 'three');
    expect(later.requests).toHaveLength(0);
    expect((await note())?.match(/“(one|two|three)”/g)).toHaveLength(3);
  });

  test('does not ask in mode auto, and writes nothing in mode plan', async () => {
    const demo = drive();
    const sessionId = await demo.open(cwd);
    await demo.agent.request(methods.agent.session.setMode, { sessionId, modeId: 'plan' });
    expect(await demo.prompt(sessionId, 'Think')).toBe('end_turn');
    expect(await note()).toBe(null);
    await demo.agent.request(methods.agent.session.setMode, { sessionId, modeId: 'auto' });
    await demo.prompt(sessionId, 'Act');
    expect(await note()).toContain('Act');
    expect(demo.requests).toHaveLength(0);
    const unknown = demo.agent.request(methods.agent.session.setMode, { sessionId, modeId: 'other' });
    await expect(unknown).rejects.toMatchObject({ code: -32602 });
  });

  test('writes more or less depending on verbosity', async () => {
    const demo = drive();
    const sessionId = await demo.open(cwd);
    await demo.prompt(sessionId, 'Talk');
    const short = demo.messageText().length;
    demo.updates.length = 0;
    const option: SetSessionConfigOptionRequest = { sessionId, configId: 'verbosity', value: 'long' };
    const { configOptions } = await demo.agent.request(methods.agent.session.setConfigOption, option);
    expect(configOptions).toMatchObject([{ id: 'verbosity', currentValue: 'long' }]);
    await demo.prompt(sessionId, 'Talk');
    expect(demo.messageText().length).toBeGreaterThan(1.5 * short);
  });

  test('overwrites only what it has shown, and follows no link', async () => {
    const demo = drive();
    const session = await demo.open(cwd);
    demo.answer = async (...asked) => {
      await writeFile(join(cwd, 'svc-demo.md'), 'mine');
      return choose('demo-once')(...asked);
    };
    await demo.prompt(session, 'Write');
    expect(await note()).toBe('mine');
    expect(demo.messageText()).toContain('has changed in the meantime');
    expect(demo.of('tool_call_update').at(-1)).toMatchObject({ toolCallId: '1-edit', status: 'failed' });

    await rm(join(cwd, 'svc-demo.md'));
    await writeFile(join(dir, 'elsewhere'), 'secret');
    await symlink(join(dir, 'elsewhere'), join(cwd, 'svc-demo.md'));
    demo.updates.length = 0;
    await demo.prompt(session, 'Write');
    expect(demo.messageText()).toContain('is a link');
    expect(demo.output).not.toContain('secret');
    expect(await readFile(join(dir, 'elsewhere'), 'utf8')).toBe('secret');
  });

  test('keeps other people’s text', async () => {
    await writeFile(join(cwd, 'svc-demo.md'), 'mine\n\nNext: also mine\n');
    const demo = drive();
    const session = await demo.open(cwd);
    await demo.prompt(session, 'one');
    await demo.prompt(session, 'two');
    const text = await note();
    expect(text?.startsWith('mine\n\nNext: also mine\n\n# Notes')).toBe(true);
    expect(text?.match(/Next: /g)).toHaveLength(2);
  });

  test('rejects a second prompt while it is in progress', async () => {
    const demo = drive();
    const session = await demo.open(cwd);
    let second: Promise<unknown> | undefined;
    demo.answer = async (...asked) => {
      second = demo.prompt(session, 'me too');
      await second.catch(() => {});
      return choose('demo-once')(...asked);
    };
    expect(await demo.prompt(session, 'Write')).toBe('end_turn');
    await expect(second).rejects.toMatchObject({ code: -32600 });
  });

  test('same seed and prompts, same bytes; another seed, other texts', async () => {
    const runs: string[] = [];
    for (const seed of [7, 7, 8]) {
      const demo = drive({ seed });
      const session = await demo.open(cwd);
      for (const prompt of ['Fix it', 'And now?', '/ask 2', '/flood 100']) await demo.prompt(session, prompt);
      runs.push(demo.output.replaceAll(session, 'SESSION'));
      await rm(join(cwd, 'svc-demo.md'));
    }
    expect(runs[1]).toBe(runs[0]);
    expect(runs[2]).not.toBe(runs[0]);
  });
});

describe('sessions', () => {
  test('are replayed by load, and continued silently by resume', async () => {
    const demo = drive();
    const sessionId = await demo.open(cwd);
    await demo.prompt(sessionId, 'Remember this');
    await demo.agent.request(methods.agent.session.setMode, { sessionId, modeId: 'auto' });
    await demo.close();

    const loaded = drive();
    await loaded.initialize();
    const answer = await loaded.agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
    expect(answer.modes?.currentModeId).toBe('auto');
    expect(loaded.messageText('user_message_chunk')).toBe('Remember this');
    expect(loaded.messageText()).toBe(demo.messageText());
    expect(loaded.messageText('agent_thought_chunk')).toBe(demo.messageText('agent_thought_chunk'));
    expect(loaded.of('plan')).toEqual(demo.of('plan'));
    expect(loaded.of('tool_call').map(({ toolCallId, status }) => [toolCallId, status])).toEqual([
      ['1-read', 'completed'],
      ['1-edit', 'completed'],
    ]);

    const resumed = drive();
    await resumed.initialize();
    await resumed.agent.request(methods.agent.session.resume, { sessionId, cwd });
    expect(resumed.messageText()).toBe('');
    await resumed.prompt(sessionId, 'Go on');
    expect(resumed.of('tool_call').map(({ toolCallId }) => toolCallId)).toEqual(['2-read', '2-edit']);
    expect(resumed.of('session_info_update').at(-1)?.title).toBe('Remember this');
  });

  test('keep messages from before a cancel, and survive a line that a crash cut off', async () => {
    const demo = drive();
    const sessionId = await demo.open(cwd);
    demo.answer = () => new Promise(() => {});
    const turn = demo.prompt(sessionId, 'Write');
    await demo.until(() => demo.requests.length === 1);
    const [file] = await readdir(state_dir);
    await writeFile(join(state_dir, file!), '\n{"update":{"sess', { flag: 'a' });
    await demo.agent.notify(methods.agent.session.cancel, { sessionId });
    await turn;
    const loaded = drive();
    await loaded.initialize();
    await loaded.agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
    expect(loaded.messageText()).toBe(demo.messageText());
    expect(loaded.of('tool_call').at(-1)).toMatchObject({ toolCallId: '1-edit', status: 'failed' });
  });

  test('are readable by this user only, and limited in number', async () => {
    const demo = drive();
    await mkdir(state_dir, { recursive: true, mode: 0o700 });
    const others = Array.from({ length: limits.demo_sessions_kept }, (_, at) => {
      return `00000000-0000-4000-8000-${String(at).padStart(12, '0')}.jsonl`;
    });
    await Promise.all(others.map((name) => writeFile(join(state_dir, name), '')));
    await utimes(join(state_dir, others[5]!), 1, 1);
    await writeFile(join(state_dir, 'not-a-session'), '');
    const session = await demo.open(cwd);
    const names = await readdir(state_dir);
    expect(names).toHaveLength(limits.demo_sessions_kept + 1);
    expect(names).not.toContain(others[5]);
    expect(names).toContain('not-a-session');
    expect((await stat(join(state_dir, `${session}.jsonl`))).mode & 0o777).toBe(0o600);
    expect((await stat(state_dir)).mode & 0o777).toBe(0o700);
  });

  test('are rejected if unknown, or with an invalid folder', async () => {
    const demo = drive();
    await demo.initialize();
    await writeFile(join(dir, 'x.jsonl'), '{"state":{}}');
    for (const sessionId of ['../x', '00000000-0000-4000-8000-000000000000']) {
      const load = demo.agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
      await expect(load).rejects.toMatchObject({ code: -32002 });
      await expect(demo.prompt(sessionId, 'hello')).rejects.toMatchObject({ code: -32002 });
    }
    for (const folder of ['work', join(dir, 'nowhere'), join(dir, 'x.jsonl')]) {
      await expect(demo.open(folder)).rejects.toMatchObject({ code: -32602 });
    }
  });

  test('report a folder that cannot be created', async () => {
    await writeFile(join(dir, 'file'), '');
    const demo = drive({ state_dir: join(dir, 'file/state') });
    await expect(demo.open(cwd)).rejects.toThrow(/sessions cannot be stored: .*file/);
  });

  test('open only after authenticate with --auth', async () => {
    const demo = drive({ auth: true });
    const { authMethods = [] } = await demo.initialize();
    await expect(demo.open(cwd)).rejects.toMatchObject({ code: -32000 });
    const wrong = demo.agent.request(methods.agent.authenticate, { methodId: 'wrong' });
    await expect(wrong).rejects.toMatchObject({ code: -32602 });
    await demo.agent.request(methods.agent.authenticate, { methodId: authMethods[0]!.id });
    expect(await demo.prompt(await demo.open(cwd), 'hello')).toBe('end_turn');
  });
});

describe('commands', () => {
  test('are offered, and work', async () => {
    const demo = drive();
    const session = await demo.open(cwd);
    expect(await demo.prompt(session, '/fail')).toBe('refusal');
    const offered = demo.of('available_commands_update')[0]!.availableCommands.map(({ name }) => name);
    expect(offered).toEqual(['fail', 'ask', 'flood', 'long', 'sleep']);

    expect(await demo.prompt(session, '/ask 3')).toBe('end_turn');
    expect(demo.requests.map(({ toolCall }) => toolCall.title)).toEqual([
      'Question 1 of 3',
      'Question 2 of 3',
      'Question 3 of 3',
    ]);

    demo.updates.length = 0;
    await demo.prompt(session, '/flood 2000');
    expect(demo.messageText()).toMatch(/^1 2 3 .* 1999 2000 That was update 2000\.$/);

    demo.updates.length = 0;
    await demo.prompt(session, '/long 64');
    expect(demo.of('agent_message_chunk')).toHaveLength(1);
    expect(demo.messageText()).toHaveLength(64 * 1024);

    demo.updates.length = 0;
    expect(await demo.prompt(session, `/ask ${limits.demo_asks_max + 1}`)).toBe('end_turn');
    expect(demo.messageText()).toContain('needs a whole number');
    expect(await note()).toBe(null);
  });

  test('can be cancelled', async () => {
    const demo = drive();
    const sessionId = await demo.open(cwd);
    for (const command of ['/sleep 3600', '/flood 1000000', '/ask 2']) {
      demo.answer = () => new Promise(() => {});
      const before = demo.updates.length;
      const turn = demo.prompt(sessionId, command);
      await demo.until(() => demo.updates.length > before);
      await demo.agent.notify(methods.agent.session.cancel, { sessionId });
      expect(await turn, command).toBe('cancelled');
    }
  });
});
