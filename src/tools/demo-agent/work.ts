/** The demo agent's actions and their plan: it reads the note, and makes a change that needs permission. */
import { join } from 'node:path';
import type { PlanEntryStatus, ToolCall } from '@agentclientprotocol/sdk';
import { NOTE, NoteError, noted, readNote, writeNote } from './note.ts';
import { type Ending, note } from './texts.ts';
import { type TurnOutput, text } from './turn-output.ts';

type Statuses = [PlanEntryStatus, PlanEntryStatus, PlanEntryStatus];

export async function plan(output: TurnOutput, quote: string, statuses: Statuses): Promise<void> {
  const [look, write, report] = statuses;
  await output.send({
    sessionUpdate: 'plan',
    entries: [
      { content: `Look at ${NOTE}`, priority: 'high', status: look },
      { content: `Write a note about “${quote}”`, priority: 'high', status: write },
      { content: 'Report what was done', priority: 'low', status: report },
    ],
  });
}

/** The part that uses the disk. */
export async function work(output: TurnOutput, quote: string): Promise<Ending> {
  try {
    await plan(output, quote, ['in_progress', 'pending', 'pending']);
    const before = await look(output);
    if (output.session.state.mode === 'plan') {
      await plan(output, quote, ['completed', 'pending', 'pending']);
      return 'planned';
    }
    await plan(output, quote, ['completed', 'in_progress', 'pending']);
    return await change(output, quote, before);
  } catch (error) {
    if (error instanceof NoteError) return { failed: error.message };
    throw error;
  }
}

async function look(output: TurnOutput): Promise<string | null> {
  const { cwd, state } = output.session;
  const path = join(cwd, NOTE);
  const call: ToolCall = {
    toolCallId: `${state.turns}-read`,
    title: `Read ${NOTE}`,
    kind: 'read',
    locations: [{ path }],
    rawInput: { path },
  };
  let found: string | null = null;
  await output.tool(call, async () => {
    await output.toolRuns(call);
    await output.pause(1_800);
    found = await readNote(cwd);
    return { status: 'completed', content: [text(found ?? `There is no ${NOTE} yet.`)] };
  });
  await output.pause(1_200);
  return found;
}

async function change(output: TurnOutput, quote: string, before: string | null): Promise<Ending> {
  const { rng, session } = output;
  const { cwd, state } = session;
  const path = join(cwd, NOTE);
  const line = note(rng, quote, state.verbosity);
  const after = noted(before, line.note, line.next);
  const call: ToolCall = {
    toolCallId: `${state.turns}-edit`,
    title: `Add a note to ${NOTE}`,
    kind: 'edit',
    locations: [{ path }],
    content: [{ type: 'diff', path, oldText: before, newText: after }],
    rawInput: { path, ...line },
  };
  let ending: Ending = 'rejected';
  await output.tool(call, async () => {
    if (!(await output.isAllowed(call))) return { status: 'failed' };
    await output.toolRuns(call);
    await output.pause(2_000);
    await writeNote(cwd, before, after);
    ending = 'written';
    return { status: 'completed' };
  });
  return ending;
}
