/** A turn as the script has it: a message, a thought, a plan, a look at the note, a change that is asked for, a report. */
import type { StopReason } from '@agentclientprotocol/sdk';
import { commandOf, runCommand } from './commands.ts';
import { type Membership, takePart } from './team-turn.ts';
import type { Telling } from './telling.ts';
import { closing, opening, quoteOf, thought } from './words.ts';
import { plan, work } from './work.ts';

const CONTEXT_TOKENS = 200_000;

export async function runTurn(
  telling: Telling,
  prompt: string,
  membership: Membership | null,
): Promise<StopReason> {
  const { session } = telling;
  const quote = quoteOf(prompt);
  const command = commandOf(prompt);
  await telling.pause(800);
  const part = membership && !command ? await takePart(telling, prompt, membership) : null;
  const stop_reason = part ?? (command ? await runCommand(telling, command) : await converse(telling, quote));
  if (stop_reason !== 'end_turn') return stop_reason;
  const title = session.state.title ?? quote;
  await session.change({ title });
  // No model, no tokens, no cost: figures that grow as they would.
  const used = Math.min(3_000 + session.state.turns * 1_500 + Math.ceil(prompt.length / 4), CONTEXT_TOKENS);
  const cost = { amount: 0, currency: 'USD' };
  await telling.tell({ sessionUpdate: 'usage_update', used, size: CONTEXT_TOKENS, cost });
  await telling.tell({ sessionUpdate: 'session_info_update', title });
  return stop_reason;
}

async function converse(telling: Telling, quote: string): Promise<StopReason> {
  const { chance, session } = telling;
  const { verbosity } = session.state;
  await telling.say(opening(chance, quote, verbosity));
  await telling.think(thought(chance, quote, verbosity));
  await plan(telling, quote, ['pending', 'pending', 'pending']);
  await telling.pause(1_000);
  const ending = await work(telling, quote);
  await telling.pause(1_000);
  const middle = ending === 'written' ? 'completed' : 'pending';
  const planned = ending === 'planned';
  if (!planned) await plan(telling, quote, ['completed', middle, 'in_progress']);
  await telling.say(closing(chance, ending, verbosity));
  if (!planned) await plan(telling, quote, ['completed', middle, 'completed']);
  return 'end_turn';
}
