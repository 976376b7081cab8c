/**
 * An ACP agent for the doctor's tests, written without the SDK so that it can misbehave. It asks for one permission
 * per turn and remembers the words in its prompts. Its arguments select defects:
 *
 * - `deaf`: answers nothing. `dies`: exits in its first turn. `v2`: speaks another version.
 * - `signed-out`: requires a sign-in. `eager`: writes without asking. `no-options`: asks without options.
 * - `runs`, `fetches`: runs or fetches without asking.
 * - `hangs`: a cancelled turn does not end. `waits`: it ends only after the open request is answered. `wrong-end`: it
 *   reports `end_turn`.
 * - `forgets`: loads an old session but forgets its content. `stubborn`: ignores TERM.
 * - `modes`: offers two modes, `options`: offers them as a session option.
 * - `orphans`: starts two processes that outlive it, one in its own session. `noisy`: writes lines that are not
 *   messages.
 */
import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const defects = new Set(process.argv.slice(2));
const has = (defect: string) => defects.has(defect);
/** Untracked, and not among the files that the doctor checks. */
const MEMORY = '.git/memory';

let asked = 0;
let cwd = '';
let turn: { id: unknown; cancelled: boolean } | null = null;

if (has('stubborn')) process.on('SIGTERM', () => {});
note(process.pid);
if (has('noisy')) process.stdout.write('Welcome!\n');
if (has('orphans')) for (const detached of [false, true]) note(startOrphan(detached));

/** Lets tests check whether every process is gone. */
function note(pid: number): void {
  if (process.env.AGENT_CHILD_PIDS) appendFileSync(process.env.AGENT_CHILD_PIDS, `${pid}\n`);
}

function startOrphan(detached: boolean): number {
  return spawn('sleep', ['600'], { detached, stdio: 'ignore' }).pid!;
}

function send(message: object): void {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}

function update(update: object): void {
  send({ method: 'session/update', params: { sessionId: 'one', update } });
}

function say(text: string): void {
  update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
}

function endTurn(stopReason: string): void {
  if (turn) send({ id: turn.id, result: { stopReason } });
  turn = null;
}

function prompt(id: unknown, text: string): void {
  turn = { id, cancelled: false };
  if (has('dies')) {
    process.stderr.write('out of luck\x1b[2J\n');
    process.exit(3);
  }
  if (has('noisy')) {
    say('x'.repeat(1_100_000));
    send({ id: 'nobody asked', result: {} });
    send({ id: 'file', method: 'fs/read_text_file', params: { sessionId: 'one', path: '/x' } });
  }
  if (text.includes('remember')) {
    remember(text);
    endTurn('end_turn');
  } else if (text.includes('shell command')) {
    act('execute', has('runs'));
  } else if (text.includes('web page')) {
    act('fetch', has('fetches'));
  } else if (has('eager')) {
    writeFileSync(`${cwd}/eager.txt`, 'x');
    say('written');
    endTurn('end_turn');
  } else ask();
}

function remember(text: string): void {
  const path = `${cwd}/${MEMORY}`;
  say(existsSync(path) && !has('forgets') ? readFileSync(path, 'utf8') : 'nothing');
  appendFileSync(path, text);
}

function act(kind: string, unasked: boolean): void {
  if (!unasked) {
    ask(kind);
    return;
  }
  update({ sessionUpdate: 'tool_call', toolCallId: kind, kind, title: `Just ${kind}`, status: 'completed' });
  endTurn('end_turn');
}

function ask(kind = 'edit'): void {
  const options = [
    { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
    { optionId: 'ever', name: 'Always here', kind: 'allow_always' },
    { optionId: 'never', name: 'No', kind: 'reject_once' },
  ];
  const toolCall = { toolCallId: `call-${++asked}`, title: 'Write', kind };
  send({
    id: `ask-${asked}`,
    method: 'session/request_permission',
    params: { sessionId: 'one', toolCall, options: has('no-options') ? [] : options },
  });
}

function answered(outcome: { outcome: string; optionId?: string }): void {
  if (!turn || (has('hangs') && turn.cancelled)) return;
  say(`chosen: ${outcome.optionId ?? outcome.outcome}`);
  const cancelled = turn.cancelled || outcome.outcome === 'cancelled';
  endTurn(cancelled && !has('wrong-end') ? 'cancelled' : 'end_turn');
}

function session(): object {
  const modes = { currentModeId: 'ask', availableModes: ['ask', 'plan'].map((id) => ({ id, name: id })) };
  const options = ['ask', 'plan'].map((value) => ({ value, name: value }));
  const mode = { id: 'mode', name: 'Mode', type: 'select', currentValue: 'ask', options };
  return {
    sessionId: 'one',
    ...(has('modes') && { modes }),
    ...(has('options') && { configOptions: [mode] }),
  };
}

function cancel(): void {
  if (!turn) return;
  turn.cancelled = true;
  if (!has('hangs') && !has('waits') && !has('wrong-end')) endTurn('cancelled');
}

createInterface({ input: process.stdin }).on('line', (line) => {
  if (has('deaf')) return;
  const { id, method, params, result } = JSON.parse(line);
  if (method === 'initialize') {
    send({
      id,
      result: {
        protocolVersion: has('v2') ? 2 : 1,
        agentInfo: { name: 'child', version: '1' },
        agentCapabilities: { loadSession: true },
        authMethods: [{ id: 'key', name: 'A key' }],
      },
    });
  } else if (method === 'session/new' || method === 'session/load') {
    cwd = params.cwd;
    if (has('signed-out')) send({ id, error: { code: -32000, message: 'Authentication required' } });
    else send({ id, result: method === 'session/new' ? session() : {} });
  } else if (method === 'session/set_mode' || method === 'session/set_config_option') {
    send({ id, result: {} });
  } else if (method === 'session/prompt') prompt(id, params.prompt[0].text);
  else if (method === 'session/cancel') cancel();
  else if (String(id).startsWith('ask-')) answered(result.outcome);
});
