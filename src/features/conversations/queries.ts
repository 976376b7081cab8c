/** SQL for prompts. The rules are in the service. */
import type { Selectable, Updateable } from 'kysely';
import { rfc3339, rfc3339OrNull } from '../../base/clock.ts';
import { preparedInsert, preparedUpdate } from '../../store/prepared-query.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';
import type { Prompt } from './rules.ts';

export type PromptRow = Selectable<Tables['prompts']>;

const newPrompt = preparedInsert('prompts');
const changedPrompt = preparedUpdate('prompts', 'num');

/**
 * The content of a prompt as it is stored and sent. Half of a surrogate pair, which strict readers of JSON reject, becomes a
 * replacement character.
 */
export function toContentJson(content: object[]): string {
  return JSON.stringify(content, (_, value: unknown) =>
    typeof value === 'string' ? value.toWellFormed() : value,
  );
}

/** Queues a prompt, even for an agent that is not running yet. */
export async function queuePrompt(
  tx: Tx,
  agent_num: number,
  prompt: { id: string; content: object[]; created_by: string | null; created_at: number },
): Promise<void> {
  const row = { ...prompt, agent_num, content: toContentJson(prompt.content), state: 'queued' } as const;
  await tx.run(newPrompt(tx, row));
}

export async function updatePrompt(
  tx: Tx,
  num: number,
  changes: Updateable<Tables['prompts']>,
): Promise<void> {
  await tx.run(changedPrompt(tx, changes, num));
}

export async function deletePrompt(tx: Tx, num: number): Promise<void> {
  await tx.run(tx.sql.deleteFrom('prompts').where('num', '=', num));
}

export function findPrompt(reader: Reader, agent_num: number, id: string): Promise<PromptRow | undefined> {
  return reader.get(
    reader.sql.selectFrom('prompts').selectAll().where('id', '=', id).where('agent_num', '=', agent_num),
  );
}

function openQuery(reader: Reader, agent_num: number) {
  return reader.sql
    .selectFrom('prompts')
    .where('agent_num', '=', agent_num)
    .where('state', 'in', ['queued', 'sent']);
}

/** The current prompt and the queued prompts, in the order in which they are sent. */
export function openPrompts(reader: Reader, agent_num: number): Promise<PromptRow[]> {
  return reader.all(openQuery(reader, agent_num).selectAll().orderBy('num'));
}

export async function countOpenPrompts(reader: Reader, agent_num: number): Promise<number> {
  return (await reader.get(
    openQuery(reader, agent_num).select(({ fn }) => fn.countAll<number>().as('count')),
  ))!.count;
}

/** The oldest queued prompt. */
export function nextPrompt(reader: Reader, agent_num: number): Promise<PromptRow | undefined> {
  const queued = openQuery(reader, agent_num).where('state', '=', 'queued');
  return reader.get(queued.selectAll().orderBy('num').limit(1));
}

/** The prompt of a session's current turn. */
export function sentPrompts(reader: Reader, agent_num: number, session_num: number): Promise<PromptRow[]> {
  const sent = openQuery(reader, agent_num)
    .where('state', '=', 'sent')
    .where('session_num', '=', session_num);
  return reader.all(sent.selectAll().orderBy('num'));
}

export function toPrompt(row: PromptRow): Prompt {
  return {
    id: row.id,
    content: JSON.parse(row.content),
    state: row.state,
    stop_reason: row.stop_reason,
    created_by: row.created_by,
    created_at: rfc3339(row.created_at),
    sent_at: rfc3339OrNull(row.sent_at),
    ended_at: rfc3339OrNull(row.ended_at),
  };
}
