/** Runs the demo agent in this process, driven by the client side of the protocol's own SDK, for tests. */
import { PassThrough, Readable, Writable } from 'node:stream';
import {
  type ClientConnection,
  client,
  methods,
  ndJsonStream,
  type PromptRequest,
  type PromptResponse,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from '@agentclientprotocol/sdk';
import { Wake } from '../../base/async.ts';
import type { ModeId } from './offers.ts';
import { serveDemo } from './serve.ts';
import type { Membership } from './team-turn.ts';

type Answer = (asked: RequestPermissionRequest, signal: AbortSignal) => Promise<RequestPermissionResponse>;

export interface DriveOptions {
  /** The agent's folder for sessions. */
  state_dir: string;
  seed?: number;
  auth?: boolean;
  mode?: ModeId;
  membership?: Membership | null;
  answer?: Answer;
}

export class Driven {
  readonly agent: ClientConnection['agent'];
  readonly updates: SessionUpdate[] = [];
  readonly requests: RequestPermissionRequest[] = [];
  /** The raw output of the agent. */
  output = '';
  stderr = '';
  answer: Answer;
  readonly stdin = new PassThrough();
  readonly #wake = new Wake();
  /** Settles when the agent has ended. */
  readonly ended: Promise<void>;

  constructor({
    state_dir,
    seed = 1,
    auth = false,
    mode = 'ask',
    membership = null,
    answer = choose('demo-once'),
  }: DriveOptions) {
    this.answer = answer;
    const [stdout, copy, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
    stderr.on('data', (chunk) => {
      this.stderr += chunk;
    });
    stdout.on('data', (chunk) => {
      this.output += chunk;
      copy.write(chunk);
    });
    const { signal } = new AbortController();
    this.ended = serveDemo(
      { seed, speed: 0, auth, state_dir, mode, membership },
      { stdin: this.stdin, stdout, stderr, signal },
    );
    const close = () => void copy.end();
    this.ended.then(close, close);
    this.agent = client({ name: 'test' })
      .onNotification(methods.client.session.update, ({ params }) => {
        this.updates.push(params.update);
        this.#wake.notify();
      })
      .onRequest(methods.client.session.requestPermission, ({ params, signal }) => {
        this.requests.push(params);
        this.#wake.notify();
        return this.answer(params, signal);
      })
      .connect(
        ndJsonStream(Writable.toWeb(this.stdin), Readable.toWeb(copy) as ReadableStream<Uint8Array>),
      ).agent;
  }

  async initialize() {
    return this.agent.request(methods.agent.initialize, { protocolVersion: 1 });
  }

  /** Opens a session and returns its id. */
  async open(cwd: string): Promise<string> {
    await this.initialize();
    const { sessionId } = await this.agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
    return sessionId;
  }

  async prompt(sessionId: string, text: string): Promise<PromptResponse['stopReason']> {
    const params: PromptRequest = { sessionId, prompt: [{ type: 'text', text }] };
    return (await this.agent.request(methods.agent.session.prompt, params)).stopReason;
  }

  /** Waits until the agent's output satisfies `enough`. */
  async until(enough: () => boolean): Promise<void> {
    while (!enough()) await this.#wake.wait();
  }

  /** The agent's messages in order. */
  messageText(kind: SessionUpdate['sessionUpdate'] = 'agent_message_chunk'): string {
    return this.of(kind)
      .map((update) => ('content' in update && 'text' in update.content! ? update.content.text : ''))
      .join('');
  }

  of<K extends SessionUpdate['sessionUpdate']>(kind: K): (SessionUpdate & { sessionUpdate: K })[] {
    return this.updates.filter((update) => update.sessionUpdate === kind) as (SessionUpdate & {
      sessionUpdate: K;
    })[];
  }

  async close(): Promise<void> {
    this.stdin.end();
    await this.ended;
  }
}

export function choose(optionId: string): Answer {
  return async () => ({ outcome: { outcome: 'selected', optionId } });
}
