/** When agents last wrote to their logs. */
import { jsonNumberTable } from '../../../store/dialects.ts';
import { preparedQuery } from '../../../store/prepared-query.ts';
import type { Reader } from '../../../store/store.ts';
import { lastEventTime } from './agents.ts';

export interface LastEvent {
  id: string;
  owner_id: string;
  team_num: number | null;
  /** Unix milliseconds. */
  last_event_at: number;
}

const lastEvents = preparedQuery((sql, nums: string) =>
  sql
    .selectFrom('agents')
    .select(['agents.id', 'agents.owner_id', 'agents.team_num'])
    .select((eb) => lastEventTime(eb).as('last_event_at'))
    .where('agents.num', 'in', sql.selectFrom(jsonNumberTable({ sql }, nums)).select('each.value')),
);

/** Leaves out agents that were deleted meanwhile or have no event. */
export async function lastEventsOf(reader: Reader, nums: readonly number[]): Promise<LastEvent[]> {
  const rows = await reader.all(lastEvents(reader, JSON.stringify(nums)));
  return rows.filter((row): row is LastEvent => row.last_event_at !== null);
}
