/** A turn as the script has it: a message, a thought, a plan, a look at the note, a change that is asked for, a report. */
import { join } from 'node:path';
import type { PlanEntryStatus, StopReason, ToolCall, ToolCallContent } from '@agentclientprotocol/sdk';
import { commandOf, runCommand } from './commands.ts';
import { NOTE, NoteError, noted, readNote, writeNote } from './note.ts';
import type { Telling } from './telling.ts';
import { closing, type Ending, note, opening, quoteOf, thought } from './words.ts';

const CONTEXT_TOKENS = 200_000;

export async function runTurn(telling: Telling, prompt: string): Promise<StopReason> {
  const { session } = telling;
  const quote = quoteOf(prompt);
  const command = commandOf(prompt);
  await telling.pause(800);
  const stop_reason = command ? await runCommand(telling, command) : await converse(telling, quote);
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

type Statuses = [PlanEntryStatus, PlanEntryStatus, PlanEntryStatus];

async function plan(telling: Telling, quote: string, statuses: Statuses): Promise<void> {
  const [look, write, report] = statuses;
  await telling.tell({
    sessionUpdate: 'plan',
    entries: [
      { content: `Look at ${NOTE}`, priority: 'high', status: look },
      { content: `Write a note about “${quote}”`, priority: 'high', status: write },
      { content: 'Say what was done', priority: 'low', status: report },
    ],
  });
}

/** The part that touches the disk. */
async function work(telling: Telling, quote: string): Promise<Ending> {
  try {
    await plan(telling, quote, ['in_progress', 'pending', 'pending']);
    const before = await look(telling);
    if (telling.session.state.mode === 'plan') {
      await plan(telling, quote, ['completed', 'pending', 'pending']);
      return 'planned';
    }
    await plan(telling, quote, ['completed', 'in_progress', 'pending']);
    return await change(telling, quote, before);
  } catch (error) {
    if (error instanceof NoteError) return { failed: error.message };
    throw error;
  }
}

async function look(telling: Telling): Promise<string | null> {
  const { cwd, state } = telling.session;
  const path = join(cwd, NOTE);
  const call: ToolCall = {
    toolCallId: `${state.turns}-read`,
    title: `Read ${NOTE}`,
    kind: 'read',
    locations: [{ path }],
    rawInput: { path },
  };
  let found: string | null = null;
  await telling.tool(call, async () => {
    await telling.toolRuns(call);
    await telling.pause(1_800);
    found = await readNote(cwd);
    return { status: 'completed', content: [text(found ?? `There is no ${NOTE} yet.`)] };
  });
  await telling.pause(1_200);
  return found;
}

async function change(telling: Telling, quote: string, before: string | null): Promise<Ending> {
  const { chance, session } = telling;
  const { cwd, state } = session;
  const path = join(cwd, NOTE);
  const line = note(chance, quote, state.verbosity);
  const after = noted(before, line.note, line.next);
  const call: ToolCall = {
    toolCallId: `${state.turns}-edit`,
    title: `Write a note into ${NOTE}`,
    kind: 'edit',
    locations: [{ path }],
    content: [{ type: 'diff', path, oldText: before, newText: after }],
    rawInput: { path, ...line },
  };
  let ending: Ending = 'rejected';
  await telling.tool(call, async () => {
    if (!(await telling.mayI(call))) return { status: 'failed' };
    await telling.toolRuns(call);
    await telling.pause(2_000);
    await writeNote(cwd, before, after);
    ending = 'written';
    return { status: 'completed' };
  });
  return ending;
}

function text(words: string): ToolCallContent {
  return { type: 'content', content: { type: 'text', text: words } };
}
