/** `svc actor time-trigger-…`: mail that an actor schedules for itself. */
import { usage } from '../../../cli/failure.ts';
import { integer } from '../../../cli/options.ts';
import { type ActorOptions, type ActorSurface, readJson } from '../../actors/commands/actor-surface.ts';

interface TriggerOptions extends ActorOptions {
  at?: string;
  everySeconds?: number;
  cron?: string;
  timezone?: string;
  payload: string;
}

export function addActorTriggers(surface: ActorSurface): void {
  surface
    .commandInRun('time-trigger-list', 'list your time triggers')
    .action(async (options: ActorOptions) => {
      await surface.print(await surface.ask(options, 'time-trigger-list', {}));
    });
  surface
    .commandInRun('time-trigger-set', 'schedule a message to yourself, once or repeatedly')
    .option('--at <time>', 'once, for example 2027-01-31T09:00:00Z')
    .option('--every-seconds <n>', 'repeatedly, every n seconds', integer)
    .option('--cron <expression>', 'repeatedly, on a schedule, for example "0 9 * * 1-5"')
    .option('--timezone <zone>', 'time zone of --cron, for example Europe/Berlin')
    .requiredOption('--payload <json>', 'the message: a JSON object')
    .action(async ({ at, everySeconds, cron, timezone, payload, ...options }: TriggerOptions) => {
      if ([at, everySeconds, cron].filter((nonEmptyName) => nonEmptyName !== undefined).length !== 1)
        throw usage('give exactly one of --at, --every-seconds and --cron');
      await surface.print(
        await surface.ask(options, 'time-trigger-set', {
          ...(at !== undefined && { at }),
          ...(everySeconds !== undefined && { every_seconds: everySeconds }),
          ...(cron !== undefined && { cron }),
          ...(timezone !== undefined && { timezone }),
          payload: readJson(payload, '--payload') as Record<string, unknown>,
        }),
      );
    });
  surface
    .command('time-trigger-cancel', 'cancel a time trigger')
    .requiredOption('--trigger-id <id>', 'id of the trigger')
    .action(async ({ triggerId: trigger_id, ...options }: ActorOptions & { triggerId: string }) => {
      await surface.print(await surface.ask(options, 'time-trigger-cancel', { trigger_id }));
    });
}
