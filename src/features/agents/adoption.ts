/**
 * Adopts the sessions of a node when the plane attaches to it. Known sessions continue at their committed cursor, ended ones
 * are forgotten on the node, and ones that the database does not know become `recovered` agents, a limited number for each
 * remote node. Nothing is stopped or started twice, except that sessions of forgotten agents are ended, and sessions that
 * the database has given up.
 */

import { newId } from '../../base/ids.ts';
import { showArgv } from '../../core/argv.ts';
import { type Link, MAIN_NODE, type NodeSink, type SessionFact, type SessionView } from '../../core/node.ts';
import { Problem, problems } from '../../core/problem.ts';
import type { Ingest } from '../../events/ingest/ingest.ts';
import { limits as storeLimits } from '../../store/limits.ts';
import { writeForLink } from '../../store/links.ts';
import { skipNumbers } from '../../store/restored.ts';
import type { Reader, Tx } from '../../store/store.ts';
import { findUser, oldestRoots } from '../../store/users.ts';
import type { AgentCore } from './core.ts';
import { discardForgotten, discardForgottenExcept, enqueueDiscard } from './forgetting.ts';
import { limits } from './limits.ts';
import {
  type AgentRow,
  countRecovered,
  findAgent,
  findSession,
  insertAgent,
  insertSession,
  liveSessions,
  type SessionRow,
  updateAgent,
  updateSession,
} from './queries/agents.ts';
import { forgottenAgent } from './queries/forgotten.ts';
import type { Reconciler } from './reconciler.ts';
import { isLive, newAgentDefaults } from './records.ts';

const FAR_AHEAD = storeLimits.restore_jump_events;
const GAP = 'the events of this agent from before it was recovered are lost';

/** The sink of a node's sessions. */
export interface AdoptingSink extends NodeSink {
  /**
   * How many sessions of the last snapshot were left on the node, because the limits for recovered agents are reached. They
   * keep running there, and a later snapshot contains them again.
   */
  readonly unrecovered: number;
}

/** Receives what a node reports while it is attached: the snapshot first, then facts and wake-ups. */
export function nodeSink(
  core: AgentCore,
  reconciler: Reconciler,
  node_id: string,
  ingest: Ingest,
): AdoptingSink {
  let unrecovered = 0;
  return {
    get unrecovered() {
      return unrecovered;
    },
    snapshot: async (...snapshot) => {
      const before = unrecovered;
      unrecovered = await adopt(core, reconciler, ingest, ...snapshot);
      if (before > 0 || unrecovered === 0) return;
      core.log.warn(
        { node_id, sessions: unrecovered },
        'too many unknown sessions; leaving them on their node',
      );
    },
    fact: (fact) => {
      ingest.fact(fact);
      void discardStarted(core, node_id, fact);
    },
    wake: (session_id, stream) => ingest.wake(session_id, stream),
  };
}

/**
 * Returns how many sessions were left on the node. Throws `node_unreachable` as soon as there is a newer link to the node,
 * whose snapshot counts instead.
 */
async function adopt(
  core: AgentCore,
  reconciler: Reconciler,
  ingest: Ingest,
  views: SessionView[],
  link: Link,
  unreadable: readonly string[],
): Promise<number> {
  const { store, log } = core;
  const { node_id } = link;
  // Read first, because the snapshot does not contain sessions that start while it is processed.
  const expected = await store.read((reader) => startedSessions(core, reader, node_id));
  // The node reports the facts of unreadable sessions later, so they are not lost.
  const seen = new Set([...views.map((view) => view.session_id), ...unreadable]);
  let left = 0;
  for (const view of views) {
    try {
      if (!(await adoptOne(core, ingest, view, link))) left += 1;
    } catch (error) {
      if (error instanceof Problem) throw error;
      const fields = { err: error, node_id, session_id: view.session_id };
      log.error(fields, 'cannot adopt a session; trying again when its node is linked again');
    }
  }
  for (const id of unreadable)
    await writeForLink(store, link, (tx) => discardForgotten(core, tx, node_id, id));
  await writeForLink(store, link, (tx) => discardForgottenExcept(tx, node_id, seen));
  for (const session of expected) {
    if (seen.has(session.id)) continue;
    await writeForLink(store, link, async (tx) => {
      if (!(await isUnchanged(tx, session))) return;
      await reconciler.endWithoutProcess(tx, session.id, {
        exit_code: null,
        exit_signal: null,
        reason: 'session_lost',
        message: 'the session directory is gone',
      });
    });
    // Lets the session's reader notice the end.
    ingest.wake(session.id);
  }
  return left;
}

/** Continues a session that its node has reported. Returns false if it is left there because of the limits for the node. */
async function adoptOne(core: AgentCore, ingest: Ingest, view: SessionView, link: Link): Promise<boolean> {
  const { store, log } = core;
  const { node_id } = link;
  const known = await store.read((reader) => findSession(reader, view.session_id));
  if (known && known.node_id !== node_id) {
    const fields = { session_id: view.session_id, node_id };
    log.error(fields, "a node reported another node's session; ignoring it");
    return true;
  }
  if (known?.state === 'ended') {
    if (view.phase === 'ended') await forgetEnded(core, node_id, view.session_id);
    else await writeForLink(store, link, (tx) => enqueueDiscard(core, tx, node_id, known));
    return true;
  }
  if (known && view.stdin_bytes > known.stdin_bytes)
    await writeForLink(store, link, (tx) => loseStdin(core, tx, view));
  if (!known) {
    if (await store.read((reader) => isOverLimit(core, reader, node_id, view))) return false;
    if (!(await writeForLink(store, link, (tx) => adoptUnknown(core, tx, node_id, view)))) return true;
  }
  // Before its end is reconciled, which treats undelivered answers as lost.
  if (known?.protocol === 'acp') await core.session.onStdinWritten(view.session_id, view.stdin_bytes);
  ingest.follow(view.session_id, view.facts);
  return true;
}

/**
 * Whether recovering a session that the database does not know would exceed the limits for its node. The main node, which
 * is as trusted as the plane, has none. Sessions that are to be removed from their node do not count.
 */
async function isOverLimit(
  { outbox }: AgentCore,
  reader: Reader,
  node_id: string,
  { session_id, launch }: SessionView,
): Promise<boolean> {
  if (node_id === MAIN_NODE) return false;
  if (await outbox.isPending(reader, session_id, 'forget')) return false;
  if ((await forgottenAgent(reader, session_id, launch.agent_id)) !== undefined) return false;
  const agent = continuedBy(await findAgent(reader, launch.agent_id), node_id);
  return agent
    ? agent.recovered_sessions >= limits.recovered_sessions_per_agent_max
    : (await countRecovered(reader, node_id)) >= limits.recovered_agents_per_node_max;
}

/**
 * The agent that continues with a recovered session, given the one that the session names; undefined if the session needs a
 * new agent. A node is not trusted about agents of other nodes, and an agent has only one live session.
 */
function continuedBy(named: AgentRow | undefined, node_id: string): AgentRow | undefined {
  return named && named.node_id === node_id && !isLive(named) ? named : undefined;
}

/** Recovers a session that the database did not know. Returns false if it must not be followed. */
async function adoptUnknown(core: AgentCore, tx: Tx, node_id: string, view: SessionView): Promise<boolean> {
  const known = await findSession(tx, view.session_id);
  if (known) return known.node_id === node_id && known.state !== 'ended';
  if (await isUnwanted(core, tx, node_id, view)) return false;
  await recover(core, tx, node_id, view);
  const fields = { session_id: view.session_id, agent_id: view.launch.agent_id };
  tx.afterCommit(() => core.log.warn(fields, 'recovered a session that the database does not know'));
  return true;
}

/** Whether the session's agent was deleted or forgotten; then an intent removes the session from the node. */
async function isUnwanted(core: AgentCore, tx: Tx, node_id: string, view: SessionView): Promise<boolean> {
  const { session_id, launch } = view;
  return (
    (await core.outbox.isPending(tx, session_id, 'forget')) ||
    (await discardForgotten(core, tx, node_id, session_id, launch.agent_id))
  );
}

/** Ends a session whose start was withdrawn but had reached the node. While the link lasts, there is no further snapshot. */
async function discardStarted(core: AgentCore, node_id: string, fact: SessionFact): Promise<void> {
  if (fact.body.kind !== 'started') return;
  const { store, log } = core;
  try {
    await store.write((tx) => discardForgotten(core, tx, node_id, fact.session_id));
  } catch (err) {
    // The next snapshot contains it again.
    log.error({ err, session_id: fact.session_id }, 'cannot end a forgotten session');
  }
}

/**
 * Removes an ended session from its node, unless an intent will, once its output has been read. Never throws, so that the other
 * sessions are adopted. A session that cannot be removed is in the next snapshot again.
 */
async function forgetEnded(core: AgentCore, node_id: string, session_id: string): Promise<void> {
  try {
    if (await core.store.read((reader) => core.outbox.isPending(reader, session_id, 'forget'))) return;
    await core.nodes.get(node_id).forget(session_id);
  } catch (error) {
    core.log.error({ err: error, session_id }, 'cannot remove the directory of an ended session');
  }
}

/** Live sessions that the node must have, because they do not wait in the outbox to be started. */
async function startedSessions(core: AgentCore, reader: Reader, node_id: string): Promise<SessionRow[]> {
  const started: SessionRow[] = [];
  for (const session of await liveSessions(reader, node_id)) {
    const may_be_unknown =
      session.state === 'starting' && (await core.outbox.isPending(reader, session.id, 'start'));
    if (!may_be_unknown) started.push(session);
  }
  return started;
}

/** Whether the session has reported nothing since its row was read. */
async function isUnchanged(reader: Reader, { id, state, fact }: SessionRow): Promise<boolean> {
  const now = await findSession(reader, id);
  return now !== undefined && now.state === state && now.fact === fact;
}

/** The node has more input than the database, because an older database was restored: new input would get wrong offsets. */
async function loseStdin(core: AgentCore, tx: Tx, { session_id, stdin_bytes }: SessionView): Promise<void> {
  const session = await findSession(tx, session_id);
  if (!session || session.stdin_lost === 1 || stdin_bytes <= session.stdin_bytes) return;
  updateSession(tx, session.num, { stdin_lost: 1 });
  await core.records.logError(tx, session.agent_id, session_id, 'stdin_lost', problems.stdinLost().message);
}

async function recover(core: AgentCore, tx: Tx, node_id: string, view: SessionView): Promise<void> {
  const { launch } = view;
  const now = core.clock.now();
  const found = await findAgent(tx, launch.agent_id);
  const known = continuedBy(found, node_id);
  // Only the main node is trusted about owners.
  const named = node_id === MAIN_NODE ? await findUser(tx, launch.owner_id) : undefined;
  const owner = named ?? (await oldestRoots(tx, 1))[0];
  const agent_id = found && !known ? newId('agt') : launch.agent_id;
  const shell = launch.argv.length === 3 && launch.argv[0] === '/bin/sh' && launch.argv[1] === '-c';
  const num =
    known?.num ??
    (await insertAgent(tx, {
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
      ...newAgentDefaults(now),
      recovered_from: node_id === MAIN_NODE ? null : node_id,
    }));
  if (!known) {
    await core.events.create(tx, num);
    // Clients may know the numbers of the log that this agent had before.
    if (agent_id === launch.agent_id)
      await skipNumbers(tx, { agent_num: num, last_seq: 0 }, FAR_AHEAD, now, GAP);
  }
  const row = (await findAgent(tx, agent_id))!;
  const number = row.session_count + 1;
  await insertSession(tx, {
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
    // The earlier messages are unknown, so the conversation cannot continue.
    stdin_lost: row.protocol === 'acp' ? 1 : 0,
  });
  updateAgent(tx, num, {
    session_id: view.session_id,
    session_count: number,
    ...(node_id !== MAIN_NODE && { recovered_sessions: row.recovered_sessions + 1 }),
    activity: null,
    updated_at: now,
  });
  await core.records.logError(
    tx,
    agent_id,
    view.session_id,
    'recovered',
    'found running on its node, unknown to the database; environment and settings are lost',
  );
  await core.records.publish(tx, agent_id);
}
