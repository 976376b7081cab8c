/** `svc actor inbox|receive|ack|send`: the mailbox. */
import { sleep } from '../../../base/async.ts';
import { collectNumbers, integer, waitOption } from '../../../cli/options.ts';
import {
  type ActorOptions,
  type ActorSurface,
  isPassing,
  readJson,
} from '../../actors/commands/actor-surface.ts';
import { limits } from '../../actors/limits.ts';

interface InboxOptions extends ActorOptions {
  limit?: number;
  all?: boolean;
}

interface SendOptions extends ActorOptions {
  to: string;
  payload: string;
  idempotencyKey?: string;
}

export function addActorMail(surface: ActorSurface): void {
  surface
    .commandInRun('inbox', 'list your unacknowledged messages, oldest first')
    .option('--limit <n>', 'maximum number of messages', integer)
    .option('--all', 'include acknowledged messages')
    .action(async ({ limit, all, ...options }: InboxOptions) => {
      const params = { ...(limit !== undefined && { limit }), ...(all && { status: 'all' as const }) };
      await surface.print(await surface.ask(options, 'inbox', params));
    });

  surface
    .commandInRun('receive', 'like inbox, but wait for a message if the inbox is empty')
    .addOption(waitOption('--wait <duration>', 'how long to wait, for example 90s or 10m', 60_000))
    .option('--limit <n>', 'maximum number of messages', integer)
    .action(async ({ wait, limit, ...options }: InboxOptions & { wait: number }) => {
      await surface.print(await receive(surface, options, wait, limit));
    });

  surface
    .command('ack', 'acknowledge messages that you have dealt with')
    .requiredOption('--message-id <id>', 'message id (repeatable)', collectNumbers)
    .action(({ messageId, ...options }: ActorOptions & { messageId: number[] }) =>
      surface.each(messageId, 'message_id', (message_id) =>
        surface.askWithRetry(options, 'ack', { message_id }),
      ),
    );

  surface
    .commandInRun('send', 'send a message to a member of the team, its leader or a person')
    .requiredOption('--to <actor>', '<member_id>, leader, user or user:<username>')
    .requiredOption('--payload <json>', 'the message: a JSON object')
    .option('--idempotency-key <key>', 'send the message only once, however often you repeat the command')
    .action(async ({ to, payload, idempotencyKey, ...options }: SendOptions) => {
      const idempotency_key = idempotencyKey ?? crypto.randomUUID();
      const object = readJson(payload, '--payload') as Record<string, unknown>;
      const sent = { to, payload: object, idempotency_key };
      await surface.print(await surface.askWithRetry(options, 'send', sent));
    });
}

/** Polls until there is a message or the time is over; the plane answers each request after a few seconds at most. */
async function receive(
  surface: ActorSurface,
  options: ActorOptions,
  wait_ms: number,
  limit: number | undefined,
): Promise<{ messages: unknown[] }> {
  const until = performance.now() + wait_ms;
  const params = limit === undefined ? {} : { limit };
  for (;;) {
    const late = () => performance.now() >= until || surface.context.io.signal.aborted;
    try {
      // Without a wait, return the messages that exist now.
      const answer = await surface.ask(options, wait_ms === 0 ? 'inbox' : 'receive', params);
      if (answer.messages.length > 0 || late()) return answer;
    } catch (error) {
      if (!isPassing(error) || late()) throw error;
      await sleep(limits.actor_retry_ms);
    }
  }
}
