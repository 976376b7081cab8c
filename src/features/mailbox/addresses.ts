/** Resolves the actor whose mail a user requests, and checks the user's rights. */

import { type Action, decide, type View } from '../../core/policy.ts';
import { invalid, notAllowedAs } from '../../core/problem.ts';
import { teamResource } from '../../store/resources.ts';
import type { Reader } from '../../store/store.ts';
import { findUserByName } from '../../store/users.ts';
import type { Caller } from '../accounts/rules.ts';
import { teamView } from '../actors/acting.ts';
import { parseUsername } from '../actors/rules/actor.ts';
import { requireRun } from '../runs/access.ts';
import { getParticipants } from '../runs/participants.ts';
import type { RunRow } from '../runs/queries/runs.ts';
import { type Actor, resolveActor } from '../teams/participants.ts';
import { findTeam, type TeamRow } from '../teams/queries.ts';
import { type ActingTarget, isOwn, mayActAs } from './rules/mail.ts';

export interface Acting {
  actor_id: string;
  /** Null: all runs. */
  run: RunRow | null;
  /** Whether messages shown to the caller count as delivered; root may look without that. */
  own: boolean;
  /** For all runs: only those of these teams; absent: no filter. */
  view?: View;
}

/** `team.read` for reading, `team.work` for everything else. */
type TeamAction = Extract<Action, 'team.read' | 'team.work'>;

/**
 * The actor that a user acts as. Throws `run not found`, `unknown actor: <id>`, also for members of teams that the
 * caller cannot see, and `not allowed to act as <id>`.
 */
export async function resolveActingActor(
  reader: Reader,
  caller: Caller,
  action: TeamAction,
  ref: string,
  run_id?: string,
): Promise<Acting> {
  if (run_id !== undefined) {
    const { team, run } = await requireRun(reader, caller, action, run_id);
    return resolveInRun(reader, caller, team, run, ref);
  }
  const actor = await actorAnywhere(reader, caller, action, ref);
  return { run: null, ...acting(caller, actor), ...teamView(caller, actor) };
}

/**
 * Like `resolveActingActor`, for what an actor has left in a run. A person may have left the team since, so their own id is not
 * resolved.
 */
export async function resolveFormerActor(
  reader: Reader,
  caller: Caller,
  action: TeamAction,
  ref: string,
  left: { run_id: string; actor_id: string },
): Promise<string> {
  const username = parseUsername(left.actor_id);
  if (username === null || ref !== left.actor_id)
    return (await resolveActingActor(reader, caller, action, ref, left.run_id)).actor_id;
  await requireRun(reader, caller, action, left.run_id);
  if (!mayActAs(caller, { kind: 'human', username })) throw notAllowedAs(ref);
  return left.actor_id;
}

/** For a run that the caller has access to. Throws `unknown actor: <id>` and `not allowed to act as <id>`. */
export async function resolveInRun(
  reader: Reader,
  caller: Caller,
  team: TeamRow,
  run: RunRow,
  ref: string,
): Promise<Acting & { run: RunRow }> {
  return { run, ...acting(caller, await actorOfRun(reader, team, run, ref)) };
}

/** Throws `unknown actor: <id>`. */
export function actorOfRun(reader: Reader, team: TeamRow, run: RunRow, ref: string): Promise<Actor> {
  return resolveActor(reader, getParticipants(team, run), ref);
}

function acting(caller: Caller, actor: Actor): Pick<Acting, 'actor_id' | 'own'> {
  const { actor_id } = actor;
  const as = actedAs(actor);
  if (!mayActAs(caller, as)) throw notAllowedAs(actor_id);
  return { actor_id, own: isOwn(caller, as) };
}

function actedAs(actor: Actor): ActingTarget {
  if (actor.kind === 'human') return actor;
  return { kind: 'member', has_no_agent: actor.member.agent === null };
}

async function actorAnywhere(
  reader: Reader,
  caller: Caller,
  action: TeamAction,
  ref: string,
): Promise<Actor> {
  const username = parseUsername(ref);
  if (username !== null) return humanAnywhere(reader, caller, ref, username);
  const team = await findTeam(reader, ref.slice(ref.lastIndexOf('@') + 1));
  if (!team || decide(caller, action, await teamResource(reader, team)) !== 'allow') throw unknown(ref);
  return resolveActor(reader, getParticipants(team, null), ref);
}

/** Only root may know whether other users exist. */
async function humanAnywhere(
  reader: Reader,
  caller: Caller,
  actor_id: string,
  username: string,
): Promise<Actor> {
  if (caller.role !== 'root' && username !== caller.username) throw notAllowedAs(actor_id);
  const user = await findUserByName(reader, username);
  if (!user) throw unknown(actor_id);
  return { kind: 'human', actor_id, role: 'human', user_id: user.id, username };
}

function unknown(actor_id: string) {
  return invalid(`unknown actor: ${actor_id}`, 'unknown_actor');
}
