/** Heads: where each agent's log begins and ends, and how many bytes it has. */
import type { Selectable } from 'kysely';
import { problems } from '../../core/problem.ts';
import { preparedInsert, preparedQuery } from '../prepared-query.ts';
import type { Reader, Writer } from '../store.ts';
import type { Tables } from '../tables.ts';

export type Head = Selectable<Tables['heads']>;

const headByAgent = preparedQuery((sql, agent_num: number) =>
  sql.selectFrom('heads').selectAll().where('agent_num', '=', agent_num),
);

/** Returns undefined once the agent is deleted. */
export function headOf(reader: Reader, agent_num: number): Promise<Head | undefined> {
  return reader.get(headByAgent(reader, agent_num));
}

const headAndId = preparedQuery((sql, agent_num: number) =>
  sql
    .selectFrom('heads')
    .innerJoin('agents', 'agents.num', 'heads.agent_num')
    .select(['agents.id', 'heads.first_seq', 'heads.last_seq', 'heads.bytes'])
    .where('heads.agent_num', '=', agent_num),
);

/** The head of an agent's log with the agent's id. */
export function headWithId(reader: Reader, agent_num: number) {
  return reader.get(headAndId(reader, agent_num));
}

/** Heads of the logs that have events, or had some. */
export function headsWithEvents(reader: Reader): Promise<Head[]> {
  return reader.all(reader.sql.selectFrom('heads').selectAll().where('last_seq', '>', 0));
}

/** Whether any agent's log has events, or had some. */
export async function hasEvents(reader: Reader): Promise<boolean> {
  const heads = reader.sql.selectFrom('heads').select('agent_num').where('last_seq', '>', 0).limit(1);
  return (await reader.get(heads)) !== undefined;
}

/** Numbers of the agents whose logs have, or had, any events. */
export async function agentsWithEvents(reader: Reader): Promise<number[]> {
  const heads = reader.sql.selectFrom('heads').select('agent_num').where('last_seq', '>', 0);
  return (await reader.all(heads)).map(({ agent_num }) => agent_num);
}

/** Numbers of the agents whose log has at least `bytes`. */
export async function agentsWithLogBytes(reader: Reader, bytes: number): Promise<number[]> {
  const heads = reader.sql.selectFrom('heads').select('agent_num').where('last_seq', '>', 0);
  return (await reader.all(heads.where('bytes', '>=', bytes))).map(({ agent_num }) => agent_num);
}

/** Bytes of all logs together. */
export async function bytesOfLogs(reader: Reader): Promise<number> {
  const sum = await reader.get(reader.sql.selectFrom('heads').select((eb) => eb.fn.sum('bytes').as('bytes')));
  return Number(sum?.bytes ?? 0);
}

/**
 * Whose logs are counted together: those of an owner's agents, without the ones that were recovered from a remote node,
 * which are counted for that node.
 */
export type LogShare = Pick<Selectable<Tables['agents']>, 'owner_id' | 'recovered_from'>;

/** How many bytes the logs of each share have. */
export async function bytesOfShares(reader: Reader): Promise<(LogShare & { bytes: number })[]> {
  const sums = await reader.all(
    reader.sql
      .selectFrom('heads')
      .innerJoin('agents', 'agents.num', 'heads.agent_num')
      .select(['agents.owner_id', 'agents.recovered_from', (eb) => eb.fn.sum('heads.bytes').as('bytes')])
      .groupBy(['agents.owner_id', 'agents.recovered_from']),
  );
  return sums.map(({ bytes, ...share }) => ({ ...share, bytes: Number(bytes) }));
}

/** The agents whose logs belong to a share. */
export function agentsOfShare({ sql }: Pick<Reader, 'sql'>, { owner_id, recovered_from }: LogShare) {
  const agents = sql.selectFrom('agents').select('agents.num').where('owner_id', '=', owner_id);
  return recovered_from === null
    ? agents.where('recovered_from', 'is', null)
    : agents.where('recovered_from', '=', recovered_from);
}

/** The agent with the largest log of a share. */
export async function largestLogOf(reader: Reader, share: LogShare): Promise<number | undefined> {
  const heads = reader.sql.selectFrom('heads').select('agent_num');
  const largest = heads.where('agent_num', 'in', agentsOfShare(reader, share)).orderBy('bytes', 'desc');
  return (await reader.get(largest.limit(1)))?.agent_num;
}

const newHead = preparedInsert('heads');

/** Creates the head of a new agent's empty log. */
export async function createHead(writer: Writer, agent_num: number): Promise<void> {
  await writer.run(newHead(writer, { agent_num, last_seq: 0, first_seq: 1, bytes: 0 }));
}

export async function deleteHead(writer: Writer, agent_num: number): Promise<void> {
  await writer.run(writer.sql.deleteFrom('heads').where('agent_num', '=', agent_num));
}

const growth = preparedQuery((sql, agent_num: number, events: number, bytes: number) =>
  sql
    .updateTable('heads')
    .set((eb) => ({ last_seq: eb('last_seq', '+', events), bytes: eb('bytes', '+', bytes) }))
    .where('agent_num', '=', agent_num)
    .returning('last_seq'),
);

/**
 * Assigns the next `events` numbers, grows the log by `bytes`, and returns the last number. Throws `agent not found` if
 * the log does not exist.
 */
export async function allocateSeqs(
  writer: Writer,
  agent_num: number,
  events: number,
  bytes: number,
): Promise<number> {
  const head = await writer.get(growth(writer, agent_num, events, bytes));
  if (!head) throw problems.agentNotFound();
  return head.last_seq;
}

/** Sets the last number, so that the next event gets the one after it. */
export async function skipTo(writer: Writer, agent_num: number, last_seq: number): Promise<void> {
  await writer.run(writer.sql.updateTable('heads').set({ last_seq }).where('agent_num', '=', agent_num));
}

/**
 * Adds `bytes`, which is negative after a deletion, to the size of a log, and moves its beginning if `first_seq` is
 * given. Returns false if the agent no longer exists.
 */
export async function resizeHead(
  writer: Writer,
  agent_num: number,
  bytes: number,
  first_seq?: number,
): Promise<boolean> {
  const { changes } = await writer.run(
    writer.sql
      .updateTable('heads')
      .set((eb) => ({
        bytes: eb('bytes', '+', bytes),
        ...(first_seq !== undefined && {
          first_seq: eb
            .case()
            .when('first_seq', '>', first_seq)
            .then(eb.ref('first_seq'))
            .else(first_seq)
            .end(),
        }),
      }))
      .where('agent_num', '=', agent_num),
  );
  return changes > 0;
}
