/**
 * The scenarios of scripted ACP agents, most of which violate the protocol in one way, which `description` states. They follow
 * it otherwise.
 */
import { exec } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Answer, Json, RpcId, Wire } from './acp-wire.ts';

const execute = promisify(exec);

export interface Scenario {
  /** A predicate of which the agent is the subject; a word in brackets is the scenario's argument. */
  description: string;
  /** Runs before the first frame. */
  onStart?: (wire: Wire) => void;
  /** Fields that override those of the answer to `initialize`. */
  initialize?: Json;
  /** The error for `session/new` or `session/load`; null: it succeeds. */
  rejectSession?: (wire: Wire, method: string) => Answer['error'] | null;
  /** Performs a turn; returns its stop reason. */
  turn?: (wire: Wire, argument: string | undefined) => Promise<string>;
  /** Continues its turn after `session/cancel`. */
  ignores_cancel?: boolean;
}

const once = { optionId: 'yes-once', name: 'Yes', kind: 'allow_once' };
const always = { optionId: 'yes-always', name: 'Yes, always', kind: 'allow_always' };
const reject = { optionId: 'no-once', name: 'No', kind: 'reject_once' };

/** A form with one field of every kind. */
export const elicitationForm = {
  mode: 'form',
  message: 'How shall I deploy it?',
  toolCallId: 'call-1',
  requestedSchema: {
    type: 'object',
    title: 'Deployment',
    properties: {
      name: { type: 'string', title: 'Name', description: 'Of the release', minLength: 2, maxLength: 20 },
      mail: { type: 'string', title: 'E-mail', format: 'email' },
      port: { type: 'integer', title: 'Port', minimum: 1024, maximum: 65_535, default: 3000 },
      share: { type: 'number', title: 'Share of traffic', minimum: 0, maximum: 1 },
      notify: { type: 'boolean', title: 'Notify the team', default: true },
      region: {
        type: 'string',
        title: 'Region',
        oneOf: [
          { const: 'eu', title: 'Europe' },
          { const: 'us', title: 'United States' },
        ],
      },
      checks: {
        type: 'array',
        title: 'Checks',
        items: { type: 'string', enum: ['lint', 'test'] },
        minItems: 1,
      },
    },
    required: ['name', 'region', 'checks'],
  },
};

let turns_sent = 0;

export const scenarios = {
  permission: {
    description: 'asks for permission once and reports the chosen option',
    turn: (wire) => requestAndQuote(wire, [once, always, reject]),
  },
  acts_alone: {
    description: 'writes without asking, in a tool call that it reports from start to end',
    turn: async (wire) => {
      const call = { toolCallId: 'call-1', title: 'Write a.txt', kind: 'edit' };
      wire.update({ sessionUpdate: 'tool_call', ...call, status: 'pending' });
      wire.update({ sessionUpdate: 'tool_call_update', toolCallId: 'call-1', status: 'completed' });
      return 'end_turn';
    },
  },
  two_always: {
    description: 'offers two options of the kind allow_always',
    turn: (wire) =>
      requestAndQuote(wire, [
        { ...always, optionId: 'always-project', name: 'Always here' },
        { ...always, optionId: 'always-user', name: 'Always everywhere' },
        once,
        reject,
      ]),
  },
  no_options: {
    description: 'asks for permission without offering an option',
    turn: (wire) => requestAndQuote(wire, []),
  },
  twice: {
    description: 'asks twice at the same time with the same JSON-RPC id',
    turn: async (wire) => {
      const questions = ['first', 'second'].map((title) => ask(wire, [once, always, reject], title, 7));
      return quote(wire, await Promise.all(questions));
    },
  },
  withdraws: {
    description: 'asks for permission, and withdraws the request after [ms]',
    turn: async (wire, ms = '0') => {
      const requestId = wire.newId();
      const question = ask(wire, [once, reject], 'soon withdrawn', requestId);
      await setTimeout(Number(ms));
      wire.send({ method: '$/cancel_request', params: { requestId } });
      return quote(wire, [await question]);
    },
  },
  ignores_cancel: {
    description: 'has a turn that never ends, not even after session/cancel',
    ignores_cancel: true,
    turn: endless,
  },
  slow: {
    description: 'has a turn that lasts until it is cancelled',
    turn: endless,
  },
  flood: {
    description: 'sends [10000] updates in a turn, as fast as it can',
    turn: async (wire, count = '10000') => {
      for (let n = 1; n <= Number(count) && !wire.cancelled; n++) {
        wire.sendText(`${n} `);
        if (n % 64 === 0) await setImmediate();
      }
      return 'end_turn';
    },
  },
  long_line: {
    description: 'sends one frame of [2097152] bytes in a turn',
    turn: async (wire, bytes = '2097152') => {
      const text = (chars: number) => ({ type: 'text', text: 'x'.repeat(chars) });
      const frame = (chars: number) =>
        JSON.stringify({
          jsonrpc: '2.0',
          method: 'session/update',
          params: {
            sessionId: wire.session_id,
            update: { sessionUpdate: 'agent_message_chunk', content: text(chars) },
          },
        });
      wire.write(`${frame(Number(bytes) - frame(0).length)}\n`);
      return 'end_turn';
    },
  },
  half_frame: {
    description: 'writes half a frame in a turn, and exits with code 1',
    turn: async (wire) => {
      wire.write('{"jsonrpc":"2.0","method":"session/upd');
      process.exit(1);
    },
  },
  crash_in_turn: {
    description: 'is killed in the middle of a turn',
    turn: async (wire) => {
      wire.sendText('These are my last');
      process.kill(process.pid, 'SIGKILL');
      return 'end_turn';
    },
  },
  v2_only: {
    description: 'supports only version 2 of the protocol',
    initialize: { protocolVersion: 2 },
  },
  auth: {
    description: 'opens no session until the user has signed in',
    initialize: { authMethods: [{ id: 'test-sign-in', name: 'Sign in' }] },
    rejectSession: (wire) => (wire.signed_in ? null : { code: -32000, message: 'Authentication required' }),
  },
  load_fails: {
    description: 'offers to load sessions, but refuses to do so',
    initialize: { agentCapabilities: { loadSession: true } },
    rejectSession: (_wire, method) =>
      method === 'session/load' ? { code: -32603, message: 'No previous sessions' } : null,
  },
  banners: {
    description: 'prints lines that are not frames, before and between its frames',
    onStart: (wire) => wire.write('Loading the model...\n\n'),
    turn: async (wire) => {
      wire.write('a line of text\n');
      wire.sendText('one ');
      wire.write('{"level":"info","msg":"JSON, and no frame"}\n[1,2]\n{broken\n');
      wire.sendText('two');
      return 'end_turn';
    },
  },
  answers_nothing: {
    description: 'answers requests that nobody sent',
    turn: async (wire) => {
      for (const id of ['nobody-sent-this', 4_711, null]) wire.send({ id, result: {} });
      wire.send({ id: 'nor-this', error: { code: -32603, message: 'Internal error' } });
      return 'end_turn';
    },
  },
  unknown_kinds: {
    description:
      'sends notifications, updates and requests that a client may not know, and reports the answers',
    turn: async (wire) => {
      wire.send({ method: '_made_up/notification', params: { sessionId: wire.session_id } });
      wire.update({ sessionUpdate: 'made_up_update', anything: [1, 2, 3] });
      return quote(
        wire,
        await Promise.all([
          wire.request('_made_up/request', {}),
          wire.request('fs/read_text_file', { path: '/made/up' }),
          wire.request('terminal/create', { command: 'made-up' }),
        ]),
      );
    },
  },
  elicits: {
    description:
      'asks for input with the parameters in [JSON or @file], by default with a form, reports a URL as complete, and reports the answer',
    turn: async (wire, params = JSON.stringify(elicitationForm)) => {
      const json = params.startsWith('@') ? await readFile(params.slice(1), 'utf8') : params;
      const request = JSON.parse(json) as Json;
      const answer = await wire.request('elicitation/create', request);
      const { elicitationId } = request;
      if (elicitationId) wire.send({ method: 'elicitation/complete', params: { elicitationId } });
      return quote(wire, [answer]);
    },
  },
  sends_updates: {
    description:
      'sends the updates in [a JSON list], one turn per prompt; an update with options is a permission request, one with sleep is a pause, one with until_file is a pause until that file exists, and one with every_ms is sent again and again until the turn is cancelled',
    turn: async (wire, list = '[]') => {
      const turns = JSON.parse(list) as Json[][];
      for (const one of turns[turns_sent++ % turns.length] ?? []) {
        if (typeof one.sleep === 'number') await setTimeout(one.sleep);
        else if (typeof one.until_file === 'string') await untilExists(one.until_file);
        else if (typeof one.every_ms === 'number') await sendEvery(wire, one as RepeatedUpdate);
        else if (one.options) await wire.request('session/request_permission', one);
        else wire.update(one);
      }
      return wire.cancelled ? 'cancelled' : 'end_turn';
    },
  },
  writes: {
    description:
      'writes the lines of [a file] unchanged, with its session id for SESSION, and waits until the turn is cancelled',
    turn: async (wire, path = '/dev/null') => {
      wire.write(readFileSync(path, 'utf8').replaceAll('SESSION', wire.session_id));
      return new Promise(() => {});
    },
  },
  calls: {
    description: 'runs [a command] in every turn, and sends its output as a message',
    turn: async (wire, command = 'true') => {
      wire.sendText((await execute(command)).stdout);
      return 'end_turn';
    },
  },
  subagents: {
    description:
      'delegates to a sub-agent [explorer] with its own session and mode, which also delegates, and asks for permission',
    turn: async (wire, title = 'explorer') => {
      const announce = (sessionId: string, fields: Json, parent?: string) =>
        wire.update({ sessionUpdate: 'subagent_update', sessionId, ...fields }, parent);
      const work = { state: 'running' };
      announce('child-1', { title, description: 'Find the failing test', state: work });
      const message = { sessionUpdate: 'session_message', messageId: 'm1', recipientSessionId: 'child-1' };
      const content = [{ type: 'text', text: 'Please look.' }];
      wire.update({ ...message, senderSessionId: wire.session_id, content });
      wire.update({ ...message, senderSessionId: wire.session_id, content }, 'child-1');
      wire.update({ sessionUpdate: 'current_mode_update', currentModeId: 'yolo' }, 'child-1');
      const call = { toolCallId: 'call-1', title: 'Look for tests', kind: 'search', status: 'completed' };
      wire.update({ sessionUpdate: 'tool_call', ...call }, 'child-1');
      announce('child-2', { title: 'reader', state: work }, 'child-1');
      wire.sendText('The reader reads.', 'child-2');
      const end = { state: 'idle', stopReason: 'end_turn' };
      announce('child-2', { state: end }, 'child-1');
      wire.sendText('I need to write.', 'child-1');
      const answer = await ask(wire, [once, reject], 'may the child', undefined, { sessionId: 'child-1' });
      announce('child-1', { state: end });
      wire.sendText('Nobody announced me.', 'unknown-1');
      return quote(wire, [answer]);
    },
  },
  subagent_calls: {
    description:
      'delegates with a tool call, whose id is in the calls, messages and requests of its sub-agent',
    turn: async (wire) => {
      const launch = { toolCallId: 'task-1', title: 'Find the failing test', kind: 'think' };
      wire.update({ sessionUpdate: 'tool_call', ...launch, status: 'pending' });
      const rawInput = { subagent_type: 'Explore', description: 'Find the failing test', prompt: 'Look.' };
      wire.update({
        ...{ sessionUpdate: 'tool_call_update', toolCallId: 'task-1' },
        ...{ status: 'in_progress', rawInput },
      });
      const _meta = { claudeCode: { parentToolUseId: 'task-1' } };
      const call = { toolCallId: 'call-1', title: 'Look for tests', kind: 'search', status: 'completed' };
      wire.update({ sessionUpdate: 'tool_call', ...call, _meta });
      const content = { type: 'text', text: 'I found it.' };
      wire.update({ sessionUpdate: 'agent_message_chunk', content, _meta });
      const toolCall = { toolCallId: 'call-2', title: 'may the call', kind: 'edit', _meta };
      const answer = await ask(wire, [once, reject], 'may the call', undefined, { toolCall });
      wire.update({ sessionUpdate: 'tool_call_update', toolCallId: 'task-1', status: 'completed' });
      return quote(wire, [answer]);
    },
  },
  numbers: {
    description: 'sends frames whose bytes change when they are parsed and written again',
    turn: async (wire) => {
      for (const frame of oddFrames(wire.session_id)) wire.write(`${frame}\n`);
      return 'end_turn';
    },
  },
} as const satisfies Record<string, Scenario>;
export type ScenarioName = keyof typeof scenarios;

/** Valid frames whose bytes change when they are parsed and written again. The scenario `numbers` sends them. */
export function oddFrames(session_id: string): string[] {
  const frame = (text: string, meta: string) =>
    `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"${session_id}","update":` +
    `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"${text}"}},"_meta":${meta}}}`;
  return [
    frame(
      'integers',
      '{"above":9007199254740993,"below":-9223372036854775808,"huge":1234567890123456789012}',
    ),
    frame('writing', '{"trailing":1.10,"exponent":1E+2,"minus":-0}'),
    frame('keys', '{"same":1,"same":2,"10":"a","9":"b","__proto__":{"x":1}}'),
    frame('caf\\u00e9 \\ud83d\\ude00 \\/ \\u0041 \\u0000 \\ud800', '{ "spaces" : [ 1 , 2 ] }'),
  ];
}

type RepeatedUpdate = Json & { every_ms: number };

async function sendEvery(wire: Wire, { every_ms, ...update }: RepeatedUpdate): Promise<void> {
  for (; !wire.cancelled; await setTimeout(every_ms)) wire.update(update);
}

async function untilExists(path: string): Promise<void> {
  while (!existsSync(path)) await setTimeout(20);
}

async function requestAndQuote(wire: Wire, options: Json[]): Promise<string> {
  return quote(wire, [await ask(wire, options, 'may I')]);
}

function ask(wire: Wire, options: Json[], title: string, id?: RpcId, more: Json = {}): Promise<Answer> {
  const toolCall = { toolCallId: `call-${title}`, title, kind: 'edit', status: 'pending' };
  return wire.request('session/request_permission', { toolCall, options, ...more }, id);
}

/** Sends the answers as a message; returns the resulting stop reason. */
function quote(wire: Wire, answers: Answer[]): string {
  const outcomes = answers.map(({ result, error }) => {
    if (error) return `error ${error.code}`;
    const { optionId, outcome } = (result?.outcome ?? {}) as Json;
    return String(optionId ?? outcome ?? JSON.stringify(result));
  });
  wire.sendText(`answered: ${outcomes.join(', ')}`);
  return outcomes.includes('cancelled') ? 'cancelled' : 'end_turn';
}

function endless(wire: Wire): Promise<string> {
  wire.sendText('This takes a while.');
  return new Promise(() => {});
}
