/**
 * `svc actor …`: what an agent, or a script that holds the shared secret, says to the plane through the nearest process. What
 * the plane answers is printed as it is, as JSON.
 */
import type { Command } from 'commander';
import { addActorMail } from './actor-mail.ts';
import { addActorReviews } from './actor-reviews.ts';
import { type ActorOptions, ActorSurface } from './actor-surface.ts';
import { addActorWork } from './actor-work.ts';
import type { Context } from './context.ts';
import { refuseRepeats } from './options.ts';

export function addActor(program: Command, context: Context): void {
  const actor = program.command('actor').description('speak to the plane as an agent or another actor');
  const surface = new ActorSurface(actor, context);
  surface.command('whoami', 'whom the plane takes you for').action(async (options: ActorOptions) => {
    await surface.print(await surface.ask(options, 'whoami', {}));
  });
  addActorWork(surface);
  addActorMail(surface);
  addActorReviews(surface);
  for (const command of actor.commands) refuseRepeats(command);
}
