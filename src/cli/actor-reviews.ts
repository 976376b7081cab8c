/** `svc actor permission-review-list|permission-review-respond`: what others ask before they go on. */
import { Option } from 'commander';
import { type Decision, decisions } from '../domain/review.ts';
import type { ActorOptions, ActorSurface } from './actor-surface.ts';
import { usage } from './failure.ts';
import { collect } from './options.ts';

interface RespondOptions extends ActorOptions {
  requestId?: string;
  permissionId?: string[];
  decision?: Decision;
  optionId?: string;
  outcome?: 'cancelled';
}

export function addActorReviews(surface: ActorSurface): void {
  surface
    .command('permission-review-list', 'the permission reviews that wait for your answer')
    .action(async (options: ActorOptions) => {
      await surface.print(await surface.ask(options, 'permission-review-list', {}));
    });

  surface
    .command('permission-review-respond', 'answer permission reviews, all of them the same')
    .option('--request-id <id>', 'which one')
    .option('--permission-id <id>', 'which ones: repeat it for several', collect)
    .addOption(
      new Option('--decision <decision>', 'the option that allows, or rejects, once').choices(decisions),
    )
    .option('--option-id <id>', "one of the agent's options, needed for everything lasting")
    .addOption(new Option('--outcome <outcome>', 'none of the options').choices(['cancelled']))
    .action(async ({ requestId, permissionId, decision, optionId, outcome, ...options }: RespondOptions) => {
      if ((requestId === undefined) === (permissionId === undefined))
        throw usage('give either --request-id or --permission-id');
      if ((outcome === undefined) === (decision === undefined && optionId === undefined))
        throw usage('give one of --decision, --option-id and --outcome');
      const answer = {
        ...(decision !== undefined && { decision }),
        ...(optionId !== undefined && { option_id: optionId }),
        ...(outcome !== undefined && { outcome }),
      };
      await surface.each(permissionId ?? [requestId!], 'permission_id', (review_id) =>
        surface.ask(options, 'permission-review-respond', { review_id, ...answer }),
      );
    });
}
