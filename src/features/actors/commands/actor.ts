/**
 * `svc actor …`: the commands with which an agent, or a script that holds the shared secret, calls the plane through
 * the nearest svc process. They print the plane's answer unchanged, as JSON.
 */
import type { Command } from 'commander';
import type { Context } from '../../../cli/context.ts';
import { rejectRepeatedOptions } from '../../../cli/options.ts';
import { addActorReviews } from './actor-reviews.ts';
import { type ActorOptions, ActorSurface } from './actor-surface.ts';
import { addActorWork } from './actor-work.ts';

/** `more`: adds the commands of other features. */
export function addActor(
  program: Command,
  context: Context,
  more: readonly ((surface: ActorSurface) => void)[],
): void {
  const actor = program.command('actor').description('call the plane as an agent or another actor');
  const surface = new ActorSurface(actor, context);
  surface.command('whoami', 'show which actor you are').action(async (options: ActorOptions) => {
    await surface.print(await surface.ask(options, 'whoami', {}));
  });
  addActorWork(surface);
  for (const add of more) add(surface);
  addActorReviews(surface);
  for (const command of actor.commands) rejectRepeatedOptions(command);
}
