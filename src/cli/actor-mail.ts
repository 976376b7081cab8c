/** `svc actor inbox|receive|ack|send`: the mailbox. */
import { sleep } from '../base/async.ts';
import { limits } from '../base/limits.ts';
import { type ActorOptions, type ActorSurface, isPassing, readJson } from './actor-surface.ts';
import { collectNumbers, timeLimit, wholeNumber } from './options.ts';

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
    .commandInRun('inbox', 'the messages that you have not acknowledged, oldest first')
    .option('--limit <n>', 'at most so many', wholeNumber)
    .option('--all', 'those that you have acknowledged too')
    .action(async ({ limit, all, ...options }: InboxOptions) => {
      const asked = { ...(limit !== undefined && { limit }), ...(all && { status: 'all' as const }) };
      await surface.print(await surface.ask(options, 'inbox', asked));
    });

  surface
    .commandInRun('receive', 'as inbox; waits for a message where there is none')
    .option('--wait <duration>', 'how long, for example 90s or 10m', timeLimit, 60_000)
    .option('--limit <n>', 'at most so many', wholeNumber)
    .action(async ({ wait, limit, ...options }: InboxOptions & { wait: number }) => {
      await surface.print(await receive(surface, options, wait, limit));
    });

  surface
    .command('ack', 'say that you have dealt with messages')
    .requiredOption('--message-id <id>', 'which; repeat it for several', collectNumbers)
    .action(({ messageId, ...options }: ActorOptions & { messageId: number[] }) =>
      surface.each(messageId, 'message_id', (message_id) => surface.askAgain(options, 'ack', { message_id })),
    );

  surface
    .commandInRun('send', 'write to a member of the team, its leader or a human')
    .requiredOption('--to <actor>', '<member_id>, leader, user or user:<username>')
    .requiredOption('--payload <json>', 'what: a JSON object')
    .option('--idempotency-key <key>', 'send it once, however often this is repeated')
    .action(async ({ to, payload, idempotencyKey, ...options }: SendOptions) => {
      const idempotency_key = idempotencyKey ?? crypto.randomUUID();
      const object = readJson(payload, '--payload') as Record<string, unknown>;
      const sent = { to, payload: object, idempotency_key };
      await surface.print(await surface.askAgain(options, 'send', sent));
    });
}

/** Asks until there is a message or the time is over; the plane answers each time after a few seconds. */
async function receive(
  surface: ActorSurface,
  options: ActorOptions,
  wait_ms: number,
  limit: number | undefined,
): Promise<{ messages: unknown[] }> {
  const until = performance.now() + wait_ms;
  const asked = limit === undefined ? {} : { limit };
  for (;;) {
    const late = () => performance.now() >= until || surface.context.io.signal.aborted;
    try {
      // Who does not wait asks for what there is.
      const answer = await surface.ask(options, wait_ms === 0 ? 'inbox' : 'receive', asked);
      if (answer.messages.length > 0 || late()) return answer;
    } catch (error) {
      if (!isPassing(error) || late()) throw error;
      await sleep(limits.actor_retry_ms);
    }
  }
}
