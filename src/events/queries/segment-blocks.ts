/** Queries about the blocks of segments in PostgreSQL. */
import { preparedQuery } from '../../store/prepared-query.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { PackedSegment, SegmentName } from '../segment.ts';

const dataOfBlock = preparedQuery((sql, agent_num: number, path: string, at: number) =>
  sql
    .selectFrom('segment_blocks')
    .select('data')
    .where('agent_num', '=', agent_num)
    .where('path', '=', path)
    .where('at', '=', at),
);

/** The block that begins at this offset; undefined if it does not exist. */
export async function blockData(
  reader: Reader,
  { agent_num, path }: SegmentName,
  at: number,
): Promise<Uint8Array | undefined> {
  return (await reader.get(dataOfBlock(reader, agent_num, path, at)))?.data;
}

/** The statement for one block. `insertBlocks` passes its parameters in this order. */
const insertion = preparedQuery((sql) =>
  sql.insertInto('segment_blocks').values({ agent_num: 0, path: '', at: 0, data: new Uint8Array() }),
);

/** `at`: where the first block begins in the segment. */
export async function insertBlocks(
  tx: Tx,
  { agent_num, path, packed }: PackedSegment,
  at: number,
): Promise<void> {
  const sets = packed.map((data) => {
    const set = [agent_num, path, at, data];
    at += data.length;
    return set;
  });
  await tx.runEach(insertion(tx), sets);
}

export async function countBlocks(tx: Tx, { agent_num, path }: SegmentName): Promise<number> {
  const counted = await tx.get(
    tx.sql
      .selectFrom('segment_blocks')
      .select((eb) => eb.fn.countAll<number>().as('count'))
      .where('agent_num', '=', agent_num)
      .where('path', '=', path),
  );
  return counted!.count;
}

export async function deleteBlocks(tx: Tx, { agent_num, path }: SegmentName): Promise<void> {
  await tx.run(
    tx.sql.deleteFrom('segment_blocks').where('agent_num', '=', agent_num).where('path', '=', path),
  );
}

/** The path of any segment of an agent that has blocks. */
export async function someBlocksOf(reader: Reader, agent_num: number): Promise<string | undefined> {
  const blocks = reader.sql.selectFrom('segment_blocks').select('path').where('agent_num', '=', agent_num);
  return (await reader.get(blocks.limit(1)))?.path;
}

/** Any blocks without a segment. */
export function findOrphan(reader: Reader): Promise<SegmentName | undefined> {
  return reader.get(
    reader.sql
      .selectFrom('segment_blocks')
      .select(['agent_num', 'path'])
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('segments')
              .select('segments.id')
              .whereRef('segments.agent_num', '=', 'segment_blocks.agent_num')
              .whereRef('segments.path', '=', 'segment_blocks.path'),
          ),
        ),
      )
      .limit(1),
  );
}
