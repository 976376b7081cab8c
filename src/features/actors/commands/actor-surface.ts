/** What the commands of `svc actor` share: the options for actor and run, the call, and the output. */
import type { Command } from 'commander';
import { sleep } from '../../../base/async.ts';
import type { Context } from '../../../cli/context.ts';
import { failed, usage } from '../../../cli/failure.ts';
import { addJsonCommand, type LocalOptions, withLocal } from '../../../cli/options.ts';
import { printJson } from '../../../cli/output.ts';
import { Problem } from '../../../core/problem.ts';
import type { ActorMethod, ActorParams, ActorResult } from '../contract.ts';
import { limits } from '../limits.ts';

export interface ActorOptions extends LocalOptions {
  actorId?: string;
  runId?: string;
}

export class ActorSurface {
  readonly context: Context;
  readonly #actor: Command;

  constructor(actor: Command, context: Context) {
    this.#actor = actor;
    this.context = context;
  }

  command(name: string, description: string): Command {
    const command = withLocal(addJsonCommand(this.#actor, name, description));
    return command.option('--actor-id <id>', 'act as this actor (SVC_ACTOR_ID)');
  }

  /** Adds a command about a run, or about an actor in a run. */
  commandInRun(name: string, description: string): Command {
    return this.command(name, description).option('--run-id <id>', 'the run (SVC_RUN_ID)');
  }

  /** Makes the call. Throws the plane's Problem, or a Failure if no process answers or there is no credential. */
  async ask<M extends ActorMethod>(
    options: ActorOptions,
    method: M,
    params: Omit<ActorParams<M>, 'actor_id' | 'run_id'>,
  ): Promise<ActorResult<M>> {
    const { callPlane } = await import('./actor-call.ts');
    const { env } = this.context.io;
    const actor_id = options.actorId ?? (env.SVC_ACTOR_ID || undefined);
    const run_id = options.runId ?? (env.SVC_RUN_ID || undefined);
    const named = { ...(actor_id !== undefined && { actor_id }), ...(run_id !== undefined && { run_id }) };
    const all = { ...named, ...params } as ActorParams<M>;
    return callPlane(this.context, options, { method, actor_id, params: all });
  }

  /** Repeats a call whose answer may have been lost; only for idempotent calls. */
  async askWithRetry<M extends ActorMethod>(
    ...args: Parameters<typeof this.ask<M>>
  ): Promise<ActorResult<M>> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.ask(...args);
      } catch (error) {
        if (!isPassing(error) || tries >= limits.actor_tries || this.context.io.signal.aborted) throw error;
        await sleep(limits.actor_retry_ms);
      }
    }
  }

  async print(answer: unknown): Promise<void> {
    await printJson(this.context.io, answer);
  }

  /**
   * Runs calls one after another. For one call, prints its result; for several, an array of results in order. A
   * failed call has an `error` in its place, and the command then exits with code 1.
   */
  async each<T>(items: readonly T[], name: string, act: (item: T) => Promise<unknown>): Promise<void> {
    const answers: unknown[] = [];
    let refusal: Problem | null = null;
    for (const item of items) {
      try {
        answers.push(await act(item));
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        answers.push({ error: error.message, [name]: item });
        refusal = error;
      }
    }
    await this.print(items.length === 1 ? answers[0] : answers);
    if (refusal) throw failed(items.length === 1 ? refusal.message : '');
  }
}

/** A process on the way to the plane may be back soon. */
export function isPassing(error: unknown): boolean {
  if (!(error instanceof Problem)) return false;
  return error.kind === 'bad_gateway' || error.kind === 'unavailable' || error.kind === 'rate_limited';
}

/** The value of a flag that takes JSON. */
export function readJson(text: string, flag: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw usage(`${flag} must be JSON`);
  }
}

/** JSON if the text parses, else the text itself; null if none exists. */
export function readOutput(text: string | undefined): unknown {
  if (text === undefined) return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
