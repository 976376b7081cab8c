/**
 * An agent that uses ACP v2, built on the SDK's agent class: `node acp-v2-agent.ts [MODE]`; in the mode `signs_in` it
 * requires a sign-in first. The prompt's text selects what it does. It exits with 0 when its input ends.
 */
import { randomUUID } from 'node:crypto';
import { Readable, Writable } from 'node:stream';
import {
  type AgentContext,
  agent,
  methods,
  ndJsonStream,
  RequestError,
  type RequestPermissionResponse,
  type RequestPermissionSubject,
  type SessionConfigOption,
  type SessionUpdate,
} from '@agentclientprotocol/sdk/experimental/v2';

const PATCH = `diff --git a/config.json b/config.json
--- a/config.json
+++ b/config.json
@@ -1,3 +1,3 @@
 {
-  "debug": false
+  "debug": true
 }
`;

const options = [
  { optionId: 'allow', name: 'Allow', kind: 'allow_once' as const },
  { optionId: 'reject', name: 'Reject', kind: 'reject_once' as const },
];
const text = (content: string) => ({ type: 'text' as const, text: content });

let signed_in = process.argv[2] !== 'signs_in';
let mode = 'auto';
let cancel = () => {};

/** What a turn sends to the client. */
class Turn {
  readonly #client: AgentContext;
  readonly #sessionId: string;

  constructor(client: AgentContext, sessionId: string) {
    this.#client = client;
    this.#sessionId = sessionId;
  }

  notify(update: SessionUpdate): Promise<void> {
    return this.#client.notify(methods.client.session.update, { sessionId: this.#sessionId, update });
  }

  sendText(content: string, messageId: string = randomUUID()): Promise<void> {
    return this.notify({ sessionUpdate: 'agent_message_chunk', messageId, content: text(content) });
  }

  run(): Promise<void> {
    return this.notify({ sessionUpdate: 'state_update', state: 'running' });
  }

  end(): Promise<void> {
    return this.notify({ sessionUpdate: 'state_update', state: 'idle', stopReason: 'end_turn' });
  }

  cancelled(): Promise<void> {
    return this.notify({ sessionUpdate: 'state_update', state: 'idle', stopReason: 'cancelled' });
  }

  refused(): Promise<void> {
    return this.notify({ sessionUpdate: 'state_update', state: 'idle', stopReason: 'refusal' });
  }

  async requestPermission(subject: RequestPermissionSubject): Promise<RequestPermissionResponse['outcome']> {
    const params = {
      sessionId: this.#sessionId,
      ...{ title: 'Change the configuration?', description: 'It turns debugging on.' },
      ...{ subject, options },
    };
    const answer = this.#client.request(methods.client.session.requestPermission, params);
    await this.notify({ sessionUpdate: 'state_update', state: 'requires_action' });
    const { outcome } = await answer;
    return outcome;
  }
}

const turns: Record<string, (turn: Turn) => Promise<void>> = {
  change: async (turn) => {
    await turn.notify({ sessionUpdate: 'agent_thought', messageId: 'thought', content: [text('A switch.')] });
    const plan = [{ content: 'Change it', priority: 'high' as const, status: 'in_progress' as const }];
    await turn.notify({ sessionUpdate: 'plan_update', plan: { type: 'items', planId: 'p', entries: plan } });
    await turn.sendText('I will ', 'first');
    await turn.sendText('look.', 'first');
    const run = { toolCallId: 'run', title: 'cat config.json', kind: 'execute' as const };
    await turn.notify({ sessionUpdate: 'terminal_update', terminalId: 't', command: 'cat config.json' });
    const content = [{ type: 'terminal' as const, terminalId: 't' }];
    await turn.notify({ sessionUpdate: 'tool_call_update', ...run, status: 'in_progress', content });
    const data = Buffer.from('{ "debug": false }\n').toString('base64');
    await turn.notify({ sessionUpdate: 'terminal_output_chunk', terminalId: 't', data });
    await turn.notify({ sessionUpdate: 'terminal_update', terminalId: 't', exitStatus: { exitCode: 0 } });
    // A command that only reads does not count as a change.
    const rawInput = { command: 'cat config.json' };
    await turn.notify({
      sessionUpdate: 'tool_call_update',
      toolCallId: 'run',
      status: 'completed',
      rawInput,
    });
    const edit = { toolCallId: 'edit', title: 'Write config.json', kind: 'edit' as const };
    const changes = [{ operation: 'modify' as const, path: `${process.cwd()}/config.json` }];
    const diff = { type: 'diff' as const, changes, patch: { format: 'git_patch' as const, text: PATCH } };
    const toolCall = { ...edit, status: 'pending' as const, content: [diff] };
    const outcome = await turn.requestPermission({ type: 'tool_call', toolCall });
    if (outcome.outcome === 'cancelled') return;
    await turn.run();
    const allowed = outcome.outcome === 'selected' && outcome.optionId === 'allow';
    const status = allowed ? ('completed' as const) : ('cancelled' as const);
    await turn.notify({ sessionUpdate: 'tool_call_update', toolCallId: 'edit', status });
    await turn.notify({ sessionUpdate: 'usage_update', used: 10, size: 100 });
    await turn.notify({ sessionUpdate: 'session_info_update', title: 'Debugging' });
    await turn.notify({ sessionUpdate: '_weather', sky: 'grey' });
    await turn.sendText(allowed ? 'It is changed.' : 'It stays.', 'last');
    await turn.end();
  },
  refuse: (turn) => turn.refused(),
  slow: (turn) => turn.sendText('I take my time.'),
  fail: async (turn) => {
    const error = { code: -32603, message: 'the model is gone' };
    await turn.notify({ sessionUpdate: 'state_update', state: 'idle', stopReason: 'error', error });
  },
  /** Ends its turn, then works without a prompt until it is cancelled. */
  later: async (turn) => {
    await turn.end();
    await turn.run();
    await turn.sendText('I continue without a prompt.');
  },
};

async function runTurn(turn: Turn, prompt: string): Promise<void> {
  cancel = () => void turn.cancelled();
  await turn.run();
  const named = turns[prompt];
  if (named) return named(turn);
  await turn.sendText(`You said: ${prompt}`);
  await turn.end();
}

function configOptions(): SessionConfigOption[] {
  const values = ['ask', 'auto'].map((value) => ({ value, name: value }));
  const select = { type: 'select' as const, currentValue: mode, options: values };
  return [{ configId: 'how', name: 'Mode', category: 'mode', ...select }];
}

function mustBeSignedIn(): void {
  if (!signed_in) throw RequestError.authRequired();
}

const stream = ndJsonStream(
  Writable.toWeb(process.stdout),
  Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>,
);
const connection = agent({ name: 'v2' })
  .onRequest(methods.agent.initialize, () => ({
    protocolVersion: 2,
    info: { name: 'v2', title: 'The v2 agent', version: '1' },
    capabilities: { session: { prompt: { image: {} }, mcp: { stdio: {} } } },
    authMethods: [{ methodId: 'key', name: 'Key', type: 'agent' as const }],
  }))
  .onRequest(methods.agent.auth.login, () => {
    signed_in = true;
    return {};
  })
  .onRequest(methods.agent.session.new, () => {
    mustBeSignedIn();
    const availableCommands = [
      { type: 'command' as const, name: 'review', description: 'Reviews the changes' },
    ];
    return { sessionId: randomUUID(), configOptions: configOptions(), availableCommands };
  })
  .onRequest(methods.agent.session.resume, async ({ params, client }) => {
    await new Turn(client, params.sessionId).notify({ sessionUpdate: 'state_update', state: 'idle' });
    return { configOptions: configOptions() };
  })
  .onRequest(methods.agent.session.setConfigOption, ({ params }) => {
    if (params.configId !== 'how') throw RequestError.invalidParams();
    mode = String(params.value);
    return { configOptions: configOptions() };
  })
  .onRequest(methods.agent.session.prompt, async ({ params, client }) => {
    const messageId = randomUUID();
    const turn = new Turn(client, params.sessionId);
    await turn.notify({ sessionUpdate: 'user_message', messageId, content: params.prompt });
    const [first] = params.prompt;
    setImmediate(() => void runTurn(turn, first?.type === 'text' ? String(first.text) : ''));
    return { messageId };
  })
  .onNotification(methods.agent.session.cancel, () => cancel())
  .connect(stream);
await connection.closed;
