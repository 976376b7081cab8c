/**
 * How the demo agent speaks to its team: by the commands that every agent has, each a process of its own, shown as a call
 * of a tool with what it printed. Nobody is asked for them. While the plane is away they are repeated, so each of them is
 * one that may be.
 */
import { execFile } from 'node:child_process';
import type { ToolCall } from '@agentclientprotocol/sdk';
import { z } from 'zod';
import { sleep } from '../base/async.ts';
import { limits } from '../base/limits.ts';
import { showArgv } from '../domain/command.ts';
import { problems } from '../domain/problem.ts';
import { stepStatuses } from '../domain/run.ts';
import { type Telling, text } from './telling.ts';

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

/** What a command said when it failed. */
export class ActorError extends Error {}

export class Actor {
  readonly #telling: Telling;
  readonly #env: Environment;
  #calls = 0;

  constructor(telling: Telling, env: Environment) {
    this.#telling = telling;
    this.#env = env;
  }

  async members(): Promise<TeamMember[]> {
    return (await this.#call(z.object({ members: z.array(member) }), 'team-members')).members;
  }

  /** All of them, or the one with its prompt. */
  async steps(step_key?: string): Promise<TeamStep[]> {
    const one = step_key === undefined ? [] : ['--step-key', step_key];
    return (await this.#call(z.object({ steps: z.array(step) }), 'step-list', ...one)).steps;
  }

  /** What waits in the inbox, acknowledged by this; `all`: what was acknowledged before as well. */
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
      // It may be there since a call whose answer was lost.
      const there = await this.steps();
      if (!there.some((one) => one.step_key === step_key)) throw error;
    }
  }

  /** Lets a step wait for a human. */
  async requireInput(step_key: string, reason: string): Promise<void> {
    await this.#call(z.unknown(), 'step-input-required', '--step-key', step_key, '--reason', reason);
  }

  /** Throws `ActorError` when the command fails, or prints something else than `answer`. */
  async #call<T>(answer: z.ZodType<T>, ...args: string[]): Promise<T> {
    const telling = this.#telling;
    const argv = ['svc', 'actor', ...args];
    const call: ToolCall = {
      toolCallId: `${telling.session.state.turns}-svc-${++this.#calls}`,
      title: showArgv(argv),
      kind: 'execute',
      rawInput: { argv },
    };
    let printed: Printed = { ok: false, stdout: '', stderr: '' };
    await telling.tool(call, async () => {
      await telling.toolRuns(call);
      await telling.pause(600);
      printed = await this.#runWhenBack(argv);
      telling.signal.throwIfAborted();
      const content = [text(`${printed.stdout}${printed.stderr}`)];
      return { status: printed.ok ? 'completed' : 'failed', content };
    });
    if (!printed.ok) throw new ActorError((printed.stderr || printed.stdout).trim());
    const read = answer.safeParse(parseJson(printed.stdout));
    if (!read.success) throw new ActorError(`svc actor ${args[0]} printed what was not expected`);
    return read.data;
  }

  /** Repeats it for some minutes while nobody answers. */
  async #runWhenBack(argv: string[]): Promise<Printed> {
    for (let tries = 1; ; tries++) {
      const printed = await this.#run(argv);
      if (!isAway(printed) || tries >= limits.demo_tries) return printed;
      await sleep(limits.demo_retry_ms, this.#telling.signal);
    }
  }

  #run([program, ...args]: string[]): Promise<Printed> {
    const options = {
      cwd: this.#telling.session.cwd,
      env: this.#env,
      signal: this.#telling.signal,
      maxBuffer: limits.demo_command_bytes_max,
    };
    return new Promise((resolve) => {
      execFile(program!, args, options, (error, stdout, stderr) =>
        resolve({ ok: error === null, stdout, stderr: stderr || (error?.message ?? '') }),
      );
    });
  }
}

interface Printed {
  ok: boolean;
  stdout: string;
  stderr: string;
}

/** Of several things that were asked for at once, stdout tells what was said of each. */
function isAway({ ok, stdout, stderr }: Printed): boolean {
  return !ok && `${stdout}${stderr}`.includes(AWAY);
}

/** Undefined for what is none. */
export function parseJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
