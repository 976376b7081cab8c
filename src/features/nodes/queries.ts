/** Queries about registered nodes, the number of agents bound to each, and the tokens with which nodes join. */
import { sql } from 'kysely';
import { MAIN_NODE } from '../../core/node.ts';
import type { View } from '../../core/policy.ts';
import { findMeta, setMeta } from '../../store/meta.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';
import { agentInView } from '../../store/views.ts';
import { limits } from './limits.ts';

export type NodeRow = Tables['nodes'];

/** Highest epoch of any deleted node. A node that is registered again under its id needs a higher one. */
const EPOCH = 'link_epoch';

export function findNode(reader: Reader, id: string): Promise<NodeRow | undefined> {
  return reader.get(reader.sql.selectFrom('nodes').selectAll().where('id', '=', id));
}

/** Whether agents can be bound to the node: it is registered, or the main node. */
export async function isNode(reader: Reader, id: string): Promise<boolean> {
  return id === MAIN_NODE || (await findNode(reader, id)) !== undefined;
}

/** The ids of all registered nodes. */
export async function nodeIds(reader: Reader): Promise<string[]> {
  return (await reader.all(reader.sql.selectFrom('nodes').select('id'))).map(({ id }) => id);
}

export async function isNodeTaken(reader: Reader, id: string, name: string): Promise<boolean> {
  const query = reader.sql.selectFrom('nodes').select('id');
  return (
    (await reader.get(query.where((where) => where.or([where('id', '=', id), where('name', '=', name)])))) !==
    undefined
  );
}

/** Newest first. */
export function listNodes(
  reader: Reader,
  page: { before?: { created_at: number; id: string } | undefined; limit?: number | undefined } = {},
): Promise<NodeRow[]> {
  const { before, limit } = page;
  let query = reader.sql.selectFrom('nodes').selectAll().orderBy('created_at', 'desc').orderBy('id', 'desc');
  if (before !== undefined) {
    query = query.where((where) =>
      where.or([
        where('created_at', '<', before.created_at),
        where.and([where('created_at', '=', before.created_at), where('id', '<', before.id)]),
      ]),
    );
  }
  return reader.all(limit === undefined ? query : query.limit(limit));
}

/** Inserts a row, whose epoch continues after those of deleted nodes. */
export async function insertNode(
  tx: Tx,
  fields: Pick<NodeRow, 'id' | 'name' | 'grpc_target' | 'tls_server_name' | 'default_worktree_root'>,
  now: number,
): Promise<NodeRow> {
  const row: NodeRow = {
    ...fields,
    disk_id: null,
    epoch: await deletedEpoch(tx),
    joined_at: null,
    last_seen_at: null,
    version: null,
    created_at: now,
    updated_at: now,
  };
  await tx.run(tx.sql.insertInto('nodes').values(row));
  return row;
}

export async function updateNode(tx: Tx, id: string, fields: Partial<Omit<NodeRow, 'id'>>): Promise<void> {
  await tx.run(tx.sql.updateTable('nodes').set(fields).where('id', '=', id));
}

/** Sets when each of these nodes was last seen, in Unix milliseconds, unless a later time is stored. */
export async function updateLastSeen(tx: Tx, seen: ReadonlyMap<string, number>): Promise<void> {
  const times = [...seen].map(([id, at_ms]) => sql`WHEN ${id} THEN CAST(${at_ms} AS BIGINT)`);
  const last_seen_at = sql<number>`CASE id ${sql.join(times, sql` `)} END`;
  await tx.run(
    tx.sql
      .updateTable('nodes')
      .set({ last_seen_at })
      .where('id', 'in', [...seen.keys()])
      .where(({ or, eb }) => or([eb('last_seen_at', 'is', null), eb('last_seen_at', '<', last_seen_at)])),
  );
}

export async function deleteNode(tx: Tx, row: NodeRow): Promise<void> {
  await setMeta(tx, EPOCH, String(Math.max(row.epoch, await deletedEpoch(tx))));
  await tx.run(tx.sql.deleteFrom('nodes').where('id', '=', row.id));
}

/** Number of agent records by node, in any status. Nodes without agents are omitted. */
export async function countAgents(reader: Reader): Promise<Map<string, number>> {
  const rows = await reader.all(
    reader.sql
      .selectFrom('agents')
      .select(['node_id', (fn) => fn.fn.countAll<number>().as('agents')])
      .groupBy('node_id'),
  );
  return new Map(rows.map(({ node_id, agents }) => [node_id, agents]));
}

export async function countNodeAgents(reader: Reader, node_id: string): Promise<number> {
  const query = reader.sql.selectFrom('agents').select((fn) => fn.fn.countAll<number>().as('agents'));
  return (await reader.get(query.where('node_id', '=', node_id)))!.agents;
}

/**
 * The repositories and existing folders of a node's agents in the view, last used first, at most
 * `limits.used_folders_max`. `used_at_ms`: when an agent was last created or started there.
 */
export function lastUsesOfFolders(
  reader: Reader,
  view: View,
  node_id: string,
): Promise<{ path: string; used_at_ms: number }[]> {
  const folder = sql<string>`coalesce(
    agents.worktree_repo,
    case when agents.worktree_mode = 'use_existing' then rtrim(agents.workdir, '/') end
  )`;
  const used = sql<number>`max(
    case when agents.started_at > agents.created_at then agents.started_at else agents.created_at end
  )`;
  return reader.all(
    reader.sql
      .selectFrom('agents')
      .select([folder.as('path'), used.as('used_at_ms')])
      .where('agents.node_id', '=', node_id)
      .where(agentInView(reader, view))
      .where(folder, 'is not', null)
      .groupBy('path')
      .orderBy('used_at_ms', 'desc')
      .limit(limits.used_folders_max),
  );
}

async function deletedEpoch(reader: Reader): Promise<number> {
  return Number((await findMeta(reader, EPOCH)) ?? 0);
}

export type BootstrapRow = Tables['bootstrap_tokens'];

/** Tokens that are valid at `at_ms` (Unix milliseconds), newest first. */
export function liveBootstrapTokens(reader: Reader, at_ms: number): Promise<BootstrapRow[]> {
  return reader.all(
    reader.sql
      .selectFrom('bootstrap_tokens')
      .selectAll()
      .where('expires_at', '>', at_ms)
      .orderBy('expires_at', 'desc')
      .orderBy('id'),
  );
}

export async function insertBootstrapToken(tx: Tx, row: BootstrapRow): Promise<void> {
  await tx.run(tx.sql.insertInto('bootstrap_tokens').values(row));
}

/** Assigns a token to the node that uses it. */
export async function spendBootstrapToken(tx: Tx, id: string, node_id: string): Promise<void> {
  await tx.run(tx.sql.updateTable('bootstrap_tokens').set({ spent_by: node_id }).where('id', '=', id));
}

/** Deletes all tokens, or those that have expired by a time. */
export async function deleteBootstrapTokens(tx: Tx, expired_by?: number): Promise<void> {
  const all = tx.sql.deleteFrom('bootstrap_tokens');
  await tx.run(expired_by === undefined ? all : all.where('expires_at', '<=', expired_by));
}
