/**
 * `svc actor …`: what an agent, or a script that holds the shared secret, says to the plane through the nearest process.
 * A command is one row: its options, the method of `contract/actor.ts`, and the parameters made of the options. What the
 * plane answers is printed as it is, as JSON.
 */
import type { Command } from 'commander';
import type { ActorMethod, ActorParams } from '../contract/actor.ts';
import type { Context } from './context.ts';
import { type LocalOptions, leaf, withLocal } from './options.ts';
import { printJson } from './output.ts';

interface ActorOptions extends LocalOptions {
  actorId?: string;
}

interface ActorCommand<M extends ActorMethod = ActorMethod> {
  name: string;
  description: string;
  method: M;
  /** `actor_id`: by flag, else by `SVC_ACTOR_ID`. */
  params(given: { actor_id: string | undefined }): ActorParams<M>;
}

const commands: ActorCommand[] = [
  {
    name: 'whoami',
    description: 'whom the plane takes you for',
    method: 'whoami',
    params: ({ actor_id }) => (actor_id === undefined ? {} : { actor_id }),
  },
];

export function addActor(program: Command, context: Context): void {
  const { io } = context;
  const actor = program.command('actor').description('speak to the plane as an agent or another actor');
  for (const { name, description, method, params } of commands) {
    withLocal(leaf(actor, name, description))
      .option('--actor-id <id>', 'whom to act as (SVC_ACTOR_ID)')
      .action(async (options: ActorOptions) => {
        const { callPlane } = await import('./actor-call.ts');
        const actor_id = options.actorId ?? (io.env.SVC_ACTOR_ID || undefined);
        await printJson(
          io,
          await callPlane(context, options, { method, actor_id, params: params({ actor_id }) }),
        );
      });
  }
}
