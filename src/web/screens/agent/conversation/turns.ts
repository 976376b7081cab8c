/** The rows of a conversation by turn (pure): a turn's prompt stays on the screen with its rows. */
import type { Item, UserMessage } from '../../../../acp/transcript/items.ts';
import type { Row } from './rows.ts';

export interface TurnRows {
  readonly key: string;
  /** Null: the rows are before the first prompt. */
  readonly prompt: UserMessage | null;
  readonly rows: readonly Row[];
}

/** `start`: the index of the first item in the rows. Its turn may have begun before. */
export function listTurns(rows: readonly Row[], items: readonly Item[], start: number): TurnRows[] {
  const begun = items.findLast(
    (item, at): item is UserMessage => at < start && item.kind === 'user_message' && item.subagent === null,
  );
  const turns: { key: string; prompt: UserMessage | null; rows: Row[] }[] = [];
  let turn = { key: `turn ${begun?.key ?? ''}`, prompt: begun ?? null, rows: [] as Row[] };
  for (const row of rows) {
    if (row.type === 'item' && row.item.kind === 'user_message') {
      if (turn.rows.length > 0) turns.push(turn);
      turn = { key: `turn ${row.item.key}`, prompt: row.item, rows: [] };
    }
    turn.rows.push(row);
  }
  if (turn.rows.length > 0) turns.push(turn);
  return turns;
}
