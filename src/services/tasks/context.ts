/** What a run that is started for a task is told of it: the task, and the end of its conversation. */
import { limits } from '../../base/limits.ts';
import { latestMessages, type MessageRow, toMessage } from '../../store/messages.ts';
import type { Reader } from '../../store/store.ts';
import { type TaskRow, toTask } from '../../store/tasks.ts';

/**
 * The caller's input with `task` and `conversation` beside it, where it has no such keys of its own. `conversation`: the newest
 * messages, oldest first, as many as there is room for.
 */
export function inputWithTask(
  reader: Reader,
  row: TaskRow,
  input: Record<string, unknown>,
): Record<string, unknown> {
  const { id, number, title, description, assignee_member_id, conversation_id } = toTask(row);
  const task = { id, number, title, description, assignee_member_id, conversation_id };
  return { task, conversation: conversationOf(reader, row.num), ...input };
}

function conversationOf(reader: Reader, task_num: number): object[] {
  const said: object[] = [];
  let chars = 0;
  for (const row of latestMessages(reader, task_num, limits.task_context_messages_max).reverse()) {
    const line = shape(row);
    chars += JSON.stringify(line).length;
    if (chars > limits.task_context_chars_max) break;
    said.push(line);
  }
  return said.reverse();
}

function shape(row: MessageRow): object {
  const { id, from_actor_id, route, to_actor_id, payload, reply_to, created_at } = toMessage(row);
  return { id, from_actor_id, route, to_actor_id, payload, reply_to, created_at };
}
