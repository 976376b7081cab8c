/** What the demo agent does with its hands, and its plan of it: a look at the note, and a change that it asks for. */
import { join } from 'node:path';
import type { PlanEntryStatus, ToolCall } from '@agentclientprotocol/sdk';
import { NOTE, NoteError, noted, readNote, writeNote } from './note.ts';
import { type Telling, text } from './telling.ts';
import { type Ending, note } from './words.ts';

type Statuses = [PlanEntryStatus, PlanEntryStatus, PlanEntryStatus];

export async function plan(telling: Telling, quote: string, statuses: Statuses): Promise<void> {
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
export async function work(telling: Telling, quote: string): Promise<Ending> {
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
