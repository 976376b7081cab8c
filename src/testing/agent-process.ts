/** An ACP agent as a child process, for tests that exchange lines with it. Its lines are kept exactly as it wrote them. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { ScenarioName } from './acp-scenarios.ts';
import type { Json } from './acp-wire.ts';

const scripted = fileURLToPath(new URL('acp-agent.ts', import.meta.url));

export class AgentProcess {
  /** Every line so far, without its newline. The last line may be incomplete. */
  readonly lines: string[] = [];
  readonly stderr: Promise<string>;
  /** Exit code and signal. */
  readonly ended: Promise<[number | null, string | null]>;
  readonly #child;
  readonly #rest: AsyncIterator<string>;

  constructor(argv: string[], home: string) {
    this.#child = spawn(process.execPath, argv, {
      env: { PATH: process.env.PATH, HOME: home },
      stdio: 'pipe',
    });
    this.#child.stdin.on('error', () => {});
    this.#rest = createInterface(this.#child.stdout)[Symbol.asyncIterator]();
    this.stderr = text(this.#child.stderr);
    this.ended = once(this.#child, 'close') as Promise<[number | null, string | null]>;
  }

  static scripted(name: ScenarioName, argument = ''): AgentProcess {
    return new AgentProcess([scripted, name, ...(argument ? [argument] : [])], '/nonexistent');
  }

  write(data: string | Buffer): void {
    this.#child.stdin.write(data);
  }

  send(message: Json): void {
    this.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  /** The next frame that satisfies `wanted`; throws if the output ends before. */
  async frame(wanted: (frame: Json) => boolean): Promise<Json> {
    for (;;) {
      const { done, value } = await this.#rest.next();
      if (done) throw new Error(`the agent ended; its last line was ${this.lines.at(-1)}`);
      this.lines.push(value);
      const frame = parse(value);
      if (frame && wanted(frame)) return frame;
    }
  }

  /** The result of a request; throws if the answer is an error. */
  async call<T = Json>(method: string, params: Json = {}, id: string | number = method): Promise<T> {
    this.send({ id, method, params });
    const { error, result } = await this.frame((frame) => frame.id === id && frame.method === undefined);
    if (error) throw Object.assign(new Error(), error);
    return result as T;
  }

  end(): void {
    this.#child.stdin.end();
  }

  kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    this.#child.kill(signal);
  }
}

function parse(line: string): Json | null {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
