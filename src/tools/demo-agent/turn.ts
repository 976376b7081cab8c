/** A turn of the script: a message, a thought, a plan, a read of the note, a change that needs permission, and a report. */
import type { StopReason } from '@agentclientprotocol/sdk';
import { commandOf, runCommand } from './commands.ts';
import { type Membership, takeTeamTurn } from './team-turn.ts';
import { closing, opening, quoteOf, thought } from './texts.ts';
import type { TurnOutput } from './turn-output.ts';
import { plan, work } from './work.ts';

const CONTEXT_TOKENS = 200_000;

export async function runTurn(
  output: TurnOutput,
  prompt: string,
  membership: Membership | null,
): Promise<StopReason> {
  const { session } = output;
  const quote = quoteOf(prompt);
  const command = commandOf(prompt);
  await output.pause(800);
  const part = membership && !command ? await takeTeamTurn(output, prompt, membership) : null;
  const stop_reason = part ?? (command ? await runCommand(output, command) : await converse(output, quote));
  if (stop_reason !== 'end_turn') return stop_reason;
  const title = session.state.title ?? quote;
  await session.change({ title });
  // There is no model and no cost, so these figures are made up.
  const used = Math.min(3_000 + session.state.turns * 1_500 + Math.ceil(prompt.length / 4), CONTEXT_TOKENS);
  const cost = { amount: 0, currency: 'USD' };
  await output.send({ sessionUpdate: 'usage_update', used, size: CONTEXT_TOKENS, cost });
  await output.send({ sessionUpdate: 'session_info_update', title });
  return stop_reason;
}

async function converse(output: TurnOutput, quote: string): Promise<StopReason> {
  const { rng, session } = output;
  const { verbosity } = session.state;
  await output.say(opening(rng, quote, verbosity));
  await output.think(thought(rng, quote, verbosity));
  await plan(output, quote, ['pending', 'pending', 'pending']);
  await output.pause(1_000);
  const ending = await work(output, quote);
  await output.pause(1_000);
  const middle = ending === 'written' ? 'completed' : 'pending';
  const planned = ending === 'planned';
  if (!planned) await plan(output, quote, ['completed', middle, 'in_progress']);
  await output.say(closing(rng, ending, verbosity));
  if (!planned) await plan(output, quote, ['completed', middle, 'completed']);
  return 'end_turn';
}
