/** `svc demo-agent` as a process: its start, its end, and bad frames. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AgentProcess } from '../../testing/agent-process.ts';
import { Driven } from './testing.ts';

const entry = fileURLToPath(new URL('../../main/svc.ts', import.meta.url));

let dir: string;
let agent: AgentProcess | null = null;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'svc-demo-'));
});

afterEach(async () => {
  agent?.kill('SIGKILL');
  await agent?.ended;
  agent = null;
  await rm(dir, { recursive: true });
});

function start(...args: string[]): AgentProcess {
  agent = new AgentProcess([entry, 'demo-agent', ...args], dir);
  return agent;
}

async function open(process: AgentProcess): Promise<string> {
  await process.call('initialize', { protocolVersion: 1 });
  const { sessionId } = await process.call<{ sessionId: string }>('session/new', {
    cwd: dir,
    mcpServers: [],
  });
  return sessionId;
}

test('introduces itself on stderr, stores sessions in the home and ends with its input', async () => {
  const process = start();
  const session = await open(process);
  expect(await readdir(join(dir, '.local/state/svc-demo'))).toEqual([`${session}.jsonl`]);
  process.end();
  expect(await process.ended).toEqual([0, null]);
  expect(await process.stderr).toMatch(/^svc demo-agent \S+: a scripted agent [^\n]*\n$/);
});

/** In a turn that lasts an hour, in the middle of its first message. */
async function inTurn(process: AgentProcess): Promise<string> {
  const sessionId = await open(process);
  const prompt = [{ type: 'text', text: '/sleep 3600' }];
  process.send({ id: 'turn', method: 'session/prompt', params: { sessionId, prompt } });
  await process.frame(() => process.lines.at(-1)!.includes('night'));
  return sessionId;
}

test('exits during a turn when its input ends, and stores its messages', async () => {
  const process = start('--state', join(dir, 'state'), '--speed', '0');
  const session = await inTurn(process);
  process.end();
  expect(await process.ended).toEqual([0, null]);
  expect(await readFile(join(dir, 'state', `${session}.jsonl`), 'utf8')).toContain('Good night');
});

test('exits immediately on SIGTERM, even during a turn', async () => {
  const process = start('--speed', '0');
  await inTurn(process);
  process.kill('SIGTERM');
  expect(await process.ended).toEqual([null, 'SIGTERM']);
});

test('--mode sets the initial mode of its sessions', async () => {
  const process = start('--mode', 'auto');
  await process.call('initialize', { protocolVersion: 1 });
  const { modes } = await process.call('session/new', { cwd: dir, mcpServers: [] });
  expect(modes).toMatchObject({ currentModeId: 'auto' });
});

test('answers or ignores bad frames', async () => {
  const process = start('--speed', '0');
  for (const line of ['no JSON', '{', '[]', '[{"jsonrpc":"2.0"}]', '7', 'null', '{}', '"\ud800"']) {
    process.write(`${line}\n`);
  }
  process.write(Buffer.from([0xff, 0x00, 0xfe, 0x0a]));
  process.write('{"jsonrpc":"2.0","id":5}\n');
  process.send({ id: 1, result: {} });
  process.send({ id: {}, method: 'initialize' });
  process.send({ id: 'a', method: 'session/prompt' });
  process.send({ method: 'session/cancel', params: null });
  process.send({ method: 'made/up' });
  await expect(process.call('initialize', { protocolVersion: 'one' })).rejects.toMatchObject({
    code: -32602,
  });
  expect(await process.call('initialize', { protocolVersion: 1 })).toMatchObject({ protocolVersion: 1 });
  const wrong = { sessionId: 1, prompt: 'text' };
  await expect(process.call('session/prompt', wrong)).rejects.toMatchObject({ code: -32602 });
  process.write('{"jsonrpc":"2.0","id":9');
  process.end();
  expect(await process.ended).toEqual([0, null]);
});

test('exits with a reason at a frame that is too long', async () => {
  const demo = new Driven({ state_dir: dir });
  demo.stdin.end('x'.repeat(33 * 1024 * 1024));
  await expect(demo.ended).rejects.toThrow('exceeds');
});
