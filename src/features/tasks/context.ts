/** The run input that is added for a task: the task, and the newest messages of its thread. */

import type { Reader } from '../../store/store.ts';
import { limits } from './limits.ts';
import { latestMessages, type MessageRow, toMessage } from './queries/messages.ts';
import { type TaskRow, toTask } from './queries/tasks.ts';

/**
 * Adds `task` and `conversation` to the caller's input, unless it has these keys. `conversation`: the newest messages
 * that fit, oldest first.
 */
export async function inputWithTask(
  reader: Reader,
  row: TaskRow,
  input: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const { id, number, title, description, assignee_member_id, conversation_id } = toTask(row);
  const task = { id, number, title, description, assignee_member_id, conversation_id };
  return { task, conversation: await readConversation(reader, row.num), ...input };
}

async function readConversation(reader: Reader, task_num: number): Promise<object[]> {
  const messages: object[] = [];
  let chars = 0;
  for (const row of (await latestMessages(reader, task_num, limits.task_context_messages_max)).reverse()) {
    const line = shape(row);
    chars += JSON.stringify(line).length;
    if (chars > limits.task_context_chars_max) break;
    messages.push(line);
  }
  return messages.reverse();
}

function shape(row: MessageRow): object {
  const { id, from_actor_id, route, to_actor_id, payload, reply_to, created_at } = toMessage(row);
  return { id, from_actor_id, route, to_actor_id, payload, reply_to, created_at };
}
