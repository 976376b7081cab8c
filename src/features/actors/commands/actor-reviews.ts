/** `svc actor permission-review-list|permission-review-respond`: permission requests of other actors. */
import { Option } from 'commander';
import { usage } from '../../../cli/failure.ts';
import { collect } from '../../../cli/options.ts';
import { type Decision, decisions } from '../../reviews/rules.ts';
import type { ActorOptions, ActorSurface } from './actor-surface.ts';

interface RespondOptions extends ActorOptions {
  requestId?: string;
  permissionId?: string[];
  decision?: Decision;
  optionId?: string;
  outcome?: 'cancelled';
}

export function addActorReviews(surface: ActorSurface): void {
  surface
    .command('permission-review-list', 'list the permission reviews that wait for your answer')
    .action(async (options: ActorOptions) => {
      await surface.print(await surface.ask(options, 'permission-review-list', {}));
    });

  surface
    .command('permission-review-respond', 'answer permission reviews, all with the same answer')
    .option('--request-id <id>', 'review id')
    .option('--permission-id <id>', 'review id (repeatable)', collect)
    .addOption(
      new Option('--decision <decision>', 'choose the option that allows or rejects once').choices(decisions),
    )
    .option('--option-id <id>', 'choose an option by its id; required for permanent decisions')
    .addOption(new Option('--outcome <outcome>', 'choose none of the options').choices(['cancelled']))
    .action(async ({ requestId, permissionId, decision, optionId, outcome, ...options }: RespondOptions) => {
      if ((requestId === undefined) === (permissionId === undefined))
        throw usage('give either --request-id or --permission-id');
      if ((outcome === undefined) === (decision === undefined && optionId === undefined))
        throw usage('give --decision or --option-id (or both), or --outcome');
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
