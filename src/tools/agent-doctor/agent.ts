/**
 * One process of the examined agent, and the conversation with it. The client side is the official SDK's, which
 * shares no code with the service. This module records what arrives; it does not judge it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  type AgentRequestMethod,
  type AgentRequestParamsByMethod,
  type AgentRequestResponsesByMethod,
  type AnyMessage,
  type ClientConnection,
  client,
  methods,
  PROTOCOL_VERSION,
  RequestError,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionNotification,
} from '@agentclientprotocol/sdk';
import { type Acting, noObservations, recordCall, recordRequest } from '../../acp/acting.ts';
import { sleep } from '../../base/async.ts';
import { version } from '../../base/version.ts';
import { limits } from '../limits.ts';
import { FrameReader, type StdoutFacts } from './frames.ts';

/** How long to wait for an agent's last output, which a process that it started may keep open. */
const LAST_WORDS_MS = 2_000;

export interface Ending {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export type PermissionOutcome = RequestPermissionResponse['outcome'];

/** What an agent sends during a turn, or while it opens a session. */
export interface Watch {
  /** By kind of update. */
  updates: Map<string, number>;
  /** The agent's messages in order, truncated if they are long. */
  text: string;
  /** Messages shown as the user's: a replay. */
  replay: string;
  permission_requests: RequestPermissionRequest[];
  /** The content of its tool calls. */
  acting: Acting;
}

export interface AgentOptions {
  argv: readonly [string, ...string[]];
  cwd: string;
  env: Record<string, string>;
  facts: StdoutFacts;
}

export class Agent {
  readonly pid: number;
  /** Resolves when the process has exited. */
  readonly ended: Promise<Ending>;
  ending: Ending | null = null;
  /** Answers the next permission requests. */
  onPermission: (request: RequestPermissionRequest) => Promise<PermissionOutcome> = async () => ({
    outcome: 'cancelled',
  });
  readonly #child: ChildProcess;
  readonly #connection: ClientConnection;
  #watch: Watch = nothingSeen();
  #stderr = '';

  /** Rejects if the program cannot be started. */
  static async start(options: AgentOptions): Promise<Agent> {
    const [program, ...args] = options.argv;
    const child = spawn(program, args, {
      cwd: options.cwd,
      env: options.env,
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    return new Agent(child, options.facts);
  }

  private constructor(child: ChildProcess, facts: StdoutFacts) {
    this.#child = child;
    this.pid = child.pid!;
    // Errors of late signals and closed pipes are ignored; the exit of the process is reported separately.
    child.on('error', () => {});
    child.stdin!.on('error', () => {});
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-limits.doctor_stderr_bytes_max);
    });
    this.#connection = this.#connect(facts);
    this.ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.ending = { code, signal };
        resolve(this.ending);
      });
    });
    // A process that it started may keep its output open indefinitely.
    const [quiet, silent] = [once(child.stdout!, 'close'), once(child.stderr!, 'close')];
    void Promise.race([this.ended, quiet]).then(async () => {
      await Promise.race([Promise.all([this.ended, quiet, silent]), sleep(LAST_WORDS_MS)]);
      this.#lost();
    });
  }

  /** The last part of its stderr. */
  get stderr(): string {
    return this.#stderr;
  }

  /** Starts a new record of what the agent sends. */
  watch(): Watch {
    this.#watch = nothingSeen();
    return this.#watch;
  }

  request<Method extends AgentRequestMethod>(
    method: Method,
    params: AgentRequestParamsByMethod[Method],
  ): Promise<AgentRequestResponsesByMethod[Method]> {
    return this.#connection.agent.request(method, params);
  }

  initialize(): Promise<AgentRequestResponsesByMethod['initialize']> {
    return this.request(methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      clientInfo: { name: 'svc-agent-doctor', version },
      clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
    });
  }

  prompt(sessionId: string, text: string): Promise<AgentRequestResponsesByMethod['session/prompt']> {
    return this.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] });
  }

  async cancel(sessionId: string): Promise<void> {
    await this.#connection.agent.notify(methods.agent.session.cancel, { sessionId });
  }

  /** Signals the process only; the agent is responsible for its children. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  #connect(facts: StdoutFacts): ClientConnection {
    const { stdin, stdout } = this.#child;
    let incoming: ReadableStreamDefaultController<AnyMessage>;
    const readable = new ReadableStream<AnyMessage>({
      start: (controller) => {
        incoming = controller;
      },
    });
    const reader = new FrameReader(facts, (message) => {
      // The SDK drops an update of an unknown form and writes to this program's stderr.
      if ('method' in message && message.method === methods.client.session.update) this.#see(message.params);
      else if (!this.#connection.signal.aborted) incoming.enqueue(message);
    });
    const writable = new WritableStream<AnyMessage>({
      write: (message) => {
        reader.sent(message);
        return new Promise((resolve) => stdin!.write(`${JSON.stringify(message)}\n`, () => resolve()));
      },
    });
    stdout!.on('data', (chunk: Buffer) => reader.push(chunk));
    stdout!.once('close', () => reader.end());
    return client()
      .onRequest(
        methods.client.session.requestPermission,
        (params) => (params ?? {}) as RequestPermissionRequest,
        async ({ params }): Promise<RequestPermissionResponse> => {
          this.#watch.permission_requests.push(params);
          this.#watch.acting = recordRequest(this.#watch.acting, params.toolCall);
          return { outcome: await this.onPermission(params) };
        },
      )
      .onRequest('*', ({ method }) => {
        if (!facts.not_offered.includes(method)) facts.not_offered.push(method);
        throw RequestError.methodNotFound(method);
      })
      .onNotification('*', () => {})
      .connect({ readable, writable });
  }

  #see(params: unknown): void {
    const { update } = (params ?? {}) as Partial<SessionNotification>;
    const { updates } = this.#watch;
    const kind = String(update?.sessionUpdate);
    updates.set(kind, (updates.get(kind) ?? 0) + 1);
    if (kind === 'tool_call' || kind === 'tool_call_update') {
      this.#watch.acting = recordCall(this.#watch.acting, { ...update });
    }
    const text = textOf(update);
    if (kind === 'agent_message_chunk') this.#watch.text = longer(this.#watch.text, text);
    if (kind === 'user_message_chunk') this.#watch.replay = longer(this.#watch.replay, text);
  }

  #lost(): void {
    this.#connection.close(
      new Error(this.ending ? `it exited (${endingText(this.ending)})` : 'it closed its stdout'),
    );
  }
}

export function endingText({ code, signal }: Ending): string {
  return signal ?? `exit code ${code}`;
}

function nothingSeen(): Watch {
  return { updates: new Map(), text: '', replay: '', permission_requests: [], acting: noObservations };
}

function textOf(update: object | undefined): string {
  const content = (update as { content?: { text?: unknown } } | undefined)?.content;
  return typeof content?.text === 'string' ? content.text : '';
}

function longer(text: string, more: string): string {
  return (text + more).slice(0, limits.doctor_text_chars_max);
}
