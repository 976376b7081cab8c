/**
 * What a plane finds when it comes (back) to a node: sessions that it knows go on from their committed cursor, ended ones
 * may be forgotten, and live ones that the database has lost become `recovered` agents. Nothing is killed or doubled, but
 * for the sessions of agents that root gave up: those are ended.
 */

import { newId } from '../../base/ids.ts';
import { showArgv } from '../../domain/command.ts';
import { MAIN_NODE, type NodeSink, type SessionFact, type SessionView } from '../../domain/node.ts';
import { problems } from '../../domain/problem.ts';
import type { Ingest } from '../../ingest/ingest.ts';
import {
  findAgent,
  findSession,
  insertAgent,
  insertSession,
  liveSessions,
  updateAgent,
  updateSession,
} from '../../store/agents.ts';
import type { Reader, Tx } from '../../store/store.ts';
import { type AgentsContext, unlived } from './context.ts';
import { discardForgotten, dropUnseen } from './forgetting.ts';
import type { Settlement } from './settle.ts';

export function nodeSink(
  context: AgentsContext,
  settlement: Settlement,
  node_id: string,
  ingest: Ingest,
): NodeSink {
  return {
    snapshot: (views) => adopt(context, settlement, node_id, ingest, views),
    fact: (fact) => {
      ingest.fact(fact);
      void discardStarted(context, node_id, fact);
    },
    wake: (session_id) => ingest.wake(session_id),
  };
}

async function adopt(
  context: AgentsContext,
  settlement: Settlement,
  node_id: string,
  ingest: Ingest,
  views: SessionView[],
): Promise<void> {
  const { store, logger } = context.options;
  const seen = new Set(views.map((view) => view.session_id));
  for (const view of views) {
    const known = await store.read((reader) => findSession(reader, view.session_id));
    if (known && known.node_id !== node_id) {
      logger.error(
        { session_id: view.session_id, node_id },
        'a node shows a session of another node; it is passed over',
      );
      continue;
    }
    const state = known?.state ?? null;
    if (state === 'ended') {
      await forget(context, node_id, view.session_id);
      continue;
    }
    if (known && view.stdin_bytes > known.stdin_bytes)
      await store.write((tx) => loseStdin(context, tx, view));
    if (state === null) {
      if (await store.write((tx) => isUnwanted(context, tx, node_id, view))) continue;
      await store.write((tx) => recover(context, tx, node_id, view));
      logger.warn(
        { session_id: view.session_id, agent_id: view.launch.agent_id },
        'found a session that the database does not know; it goes on',
      );
    }
    // Before its end is settled, which takes what has not arrived for lost.
    if (known?.protocol === 'acp') await context.options.reached(view.session_id, view.stdin_bytes);
    ingest.follow(view.session_id, view.facts);
  }
  await store.write((tx) => dropUnseen(tx, node_id, seen));
  for (const session of await store.read((reader) => lostSessions(context, reader, node_id, seen))) {
    const message = 'the session directory is gone';
    await settlement.settleWithoutProcess(session.id, {
      exit_code: null,
      exit_signal: null,
      reason: 'session_lost',
      message,
    });
    // Whoever reads it finds that there is no more to read.
    ingest.wake(session.id);
  }
}

/** Of an agent that was deleted or forgotten: it goes once the node has heard of it. */
function isUnwanted(context: AgentsContext, tx: Tx, node_id: string, view: SessionView): boolean {
  const { session_id, launch } = view;
  return (
    context.options.outbox.waits(tx, session_id, 'forget') ||
    discardForgotten(context, tx, node_id, session_id, launch.agent_id)
  );
}

/** A start that was withdrawn, and had reached the node all the same. Over a link that lasts no snapshot shows it. */
async function discardStarted(context: AgentsContext, node_id: string, fact: SessionFact): Promise<void> {
  if (fact.body.kind !== 'started') return;
  const { store, logger } = context.options;
  try {
    await store.write((tx) => discardForgotten(context, tx, node_id, fact.session_id));
  } catch (err) {
    // The next snapshot shows it again.
    logger.error({ err, session_id: fact.session_id }, 'a forgotten session was not ended');
  }
}

/** One that cannot be removed now is in the next snapshot again; it must not keep the others from going on. */
async function forget(context: AgentsContext, node_id: string, session_id: string): Promise<void> {
  try {
    await context.node(node_id).forget(session_id);
  } catch (error) {
    context.options.logger.error(
      { err: error, session_id },
      'the directory of an ended session is not removed',
    );
  }
}

/** Live by our books, unknown to the node, and not waiting in the outbox to be started there. */
function lostSessions(context: AgentsContext, reader: Reader, node_id: string, seen: Set<string>) {
  return liveSessions(reader, node_id).filter((session) => {
    return !seen.has(session.id) && !context.options.outbox.waits(reader, session.id, 'start');
  });
}

/** The node knows more than the database: an older one was restored. Whatever were said now would be taken for said. */
function loseStdin(context: AgentsContext, tx: Tx, { session_id }: SessionView): void {
  const session = findSession(tx, session_id);
  if (!session || session.stdin_lost === 1) return;
  updateSession(tx, session.num, { stdin_lost: 1 });
  context.error(tx, session.agent_id, session_id, 'stdin_lost', problems.stdinLost().message);
}

function recover(context: AgentsContext, tx: Tx, node_id: string, view: SessionView): void {
  const { launch } = view;
  const now = context.now();
  const found = findAgent(tx, launch.agent_id);
  // What a node says of an agent of another node counts as little as what it says of an owner.
  const known = found?.node_id === node_id ? found : undefined;
  const root = tx.get(
    tx.sql.selectFrom('users').select('id').where('role', '=', 'root').orderBy('created_at').limit(1),
  );
  const named = tx.get(tx.sql.selectFrom('users').select('id').where('id', '=', launch.owner_id));
  const owner = (node_id === MAIN_NODE ? named : undefined) ?? root;
  const lives = known && known.session_state !== 'ended' && known.session_state !== null;
  const agent_id = lives || (found && !known) ? newId('agt') : launch.agent_id;
  const shell = launch.argv.length === 3 && launch.argv[0] === '/bin/sh' && launch.argv[1] === '-c';
  const num =
    known && agent_id === known.id
      ? known.num
      : insertAgent(tx, {
          id: agent_id,
          name: launch.agent_name,
          owner_id: owner?.id ?? launch.owner_id,
          node_id,
          workdir: launch.workdir,
          command: shell ? launch.argv[2]! : showArgv(launch.argv),
          argv: shell ? null : JSON.stringify(launch.argv),
          protocol: 'auto',
          worktree_mode: 'use_existing',
          env: '{}',
          labels: JSON.stringify({ recovered: 'true' }),
          restart_policy: 'never',
          stdin: launch.stdin ? 1 : 0,
          on_exit: launch.on_exit,
          ...unlived(now),
        });
  if (num !== known?.num) context.options.log.create(tx, num);
  const row = findAgent(tx, agent_id)!;
  const number = row.session_count + 1;
  insertSession(tx, {
    id: view.session_id,
    agent_num: num,
    node_id,
    number,
    state: 'starting',
    stopping: 0,
    created_at: now,
    first_seq: (row.last_seq ?? 0) + 1,
    fact: 0,
    stdin_bytes: view.stdin_bytes,
    // What was said in it is not known, so it cannot go on.
    stdin_lost: row.protocol === 'acp' ? 1 : 0,
  });
  updateAgent(tx, num, {
    session_id: view.session_id,
    session_count: number,
    activity: null,
    updated_at: now,
  });
  context.error(
    tx,
    agent_id,
    view.session_id,
    'recovered',
    'found running on its node, unknown to the database; environment and settings are lost',
  );
  context.publish(tx, agent_id);
}
