/**
 * How the demo agent calls its team: with the `svc actor` commands that every agent has. Each is a process, shown as
 * a tool call with its output, and needs no permission. While the plane is unreachable, commands are repeated, so
 * only commands that are safe to repeat are used.
 */
import { execFile } from 'node:child_process';
import type { ToolCall } from '@agentclientprotocol/sdk';
import { z } from 'zod';
import { sleep } from '../../base/async.ts';
import { showArgv } from '../../core/argv.ts';
import { problems } from '../../core/problem.ts';
import { stepStatuses } from '../../features/runs/rules/run.ts';
import { limits } from '../limits.ts';
import { type TurnOutput, text } from './turn-output.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

const member = z.object({ actor_id: z.string(), member_id: z.string().nullable(), role: z.string() });
export type TeamMember = z.infer<typeof member>;

const step = z.object({
  step_key: z.string(),
  member_id: z.string(),
  status: z.enum(stepStatuses),
  prompt: z.string().default(''),
});
export type TeamStep = z.infer<typeof step>;

const mail = z.object({
  id: z.int(),
  from_actor_id: z.string(),
  status: z.string(),
  payload: z.record(z.string(), z.unknown()),
});
export type TeamMail = z.infer<typeof mail>;

const AWAY = problems.nodeUnreachable().message;

/** The error output of a failed command. */
export class ActorError extends Error {}

export class Actor {
  readonly #output: TurnOutput;
  readonly #env: Environment;
  #calls = 0;

  constructor(output: TurnOutput, env: Environment) {
    this.#output = output;
    this.#env = env;
  }

  async members(): Promise<TeamMember[]> {
    return (await this.#call(z.object({ members: z.array(member) }), 'team-members')).members;
  }

  /** All steps, or one with its prompt. */
  async steps(step_key?: string): Promise<TeamStep[]> {
    const one = step_key === undefined ? [] : ['--step-key', step_key];
    return (await this.#call(z.object({ steps: z.array(step) }), 'step-list', ...one)).steps;
  }

  /** Returns the unacknowledged messages and acknowledges them; `all`: acknowledged ones too. */
  async takeMail(all = false): Promise<TeamMail[]> {
    const answer = z.object({ messages: z.array(mail) });
    const { messages } = await this.#call(answer, 'inbox', ...(all ? ['--all'] : []));
    const fresh = messages.filter(({ status }) => status === 'pending' || status === 'delivered');
    if (fresh.length > 0) {
      await this.#call(z.unknown(), 'ack', ...fresh.flatMap(({ id }) => ['--message-id', String(id)]));
    }
    return messages.filter(({ status }) => status !== 'dead_letter');
  }

  async send(to: string, payload: Record<string, unknown>): Promise<void> {
    const once = ['--idempotency-key', crypto.randomUUID()];
    await this.#call(z.unknown(), 'send', '--to', to, '--payload', JSON.stringify(payload), ...once);
  }

  async addStep(step_key: string, member_id: string, prompt: string): Promise<void> {
    const args = ['--step-key', step_key, '--member', member_id, '--prompt', prompt];
    try {
      await this.#call(z.unknown(), 'step-add', ...args);
    } catch (error) {
      if (!(error instanceof ActorError)) throw error;
      // The step may exist already, from a call whose answer was lost.
      const existing = await this.steps();
      if (!existing.some((one) => one.step_key === step_key)) throw error;
    }
  }

  /** Makes a step wait for a person's answer. */
  async requireInput(step_key: string, reason: string): Promise<void> {
    await this.#call(z.unknown(), 'step-input-required', '--step-key', step_key, '--reason', reason);
  }

  /** Throws `ActorError` if the command fails, or prints anything but an `answer`. */
  async #call<T>(answer: z.ZodType<T>, ...args: string[]): Promise<T> {
    const output = this.#output;
    const argv = ['svc', 'actor', ...args];
    const command = showArgv(argv);
    const call: ToolCall = {
      toolCallId: `${output.session.state.turns}-svc-${++this.#calls}`,
      title: command,
      kind: 'execute',
      rawInput: { command },
    };
    let printed: CommandResult = { ok: false, stdout: '', stderr: '' };
    await output.tool(call, async () => {
      await output.toolRuns(call);
      await output.pause(600);
      printed = await this.#runWhenBack(argv);
      output.signal.throwIfAborted();
      const content = [text(`${printed.stdout}${printed.stderr}`)];
      return { status: printed.ok ? 'completed' : 'failed', content };
    });
    if (!printed.ok) throw new ActorError((printed.stderr || printed.stdout).trim());
    const read = answer.safeParse(parseJson(printed.stdout));
    if (!read.success) throw new ActorError(`svc actor ${args[0]} printed unexpected output`);
    return read.data;
  }

  /** Repeats the command for some minutes while the plane is unreachable. */
  async #runWhenBack(argv: string[]): Promise<CommandResult> {
    for (let tries = 1; ; tries++) {
      const printed = await this.#run(argv);
      if (!isAway(printed) || tries >= limits.demo_tries) return printed;
      await sleep(limits.demo_retry_ms, this.#output.signal);
    }
  }

  #run([program, ...args]: string[]): Promise<CommandResult> {
    const options = {
      cwd: this.#output.session.cwd,
      env: this.#env,
      signal: this.#output.signal,
      maxBuffer: limits.demo_command_bytes_max,
    };
    return new Promise((resolve) => {
      execFile(program!, args, options, (error, stdout, stderr) =>
        resolve({ ok: error === null, stdout, stderr: stderr || (error?.message ?? '') }),
      );
    });
  }
}

interface CommandResult {
  ok: boolean;
  stdout: string;
  stderr: string;
}

/** For several calls in one command, stdout has the result of each. */
function isAway({ ok, stdout, stderr }: CommandResult): boolean {
  return !ok && `${stdout}${stderr}`.includes(AWAY);
}

/** Undefined if the text is not JSON. */
export function parseJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
