/** Whose mail a user asks for, and who may. */
import { usernameOf } from '../../domain/actor.ts';
import { type ActedAs, isOwn, mayActAs } from '../../domain/mail.ts';
import { type Action, decide, type View, viewOf } from '../../domain/policy.ts';
import { invalid, notAllowedAs } from '../../domain/problem.ts';
import type { Caller } from '../../domain/user.ts';
import { type RunRow, specOf } from '../../store/runs.ts';
import type { Reader } from '../../store/store.ts';
import { findTeam, type TeamRow } from '../../store/teams.ts';
import { teamResource } from '../resources.ts';
import { mustFindRun } from '../teams/access.ts';
import { type Actor, resolveActor } from '../teams/cast.ts';

export interface Acting {
  actor_id: string;
  /** Null: of all runs. */
  run: RunRow | null;
  /** What is shown to the caller is delivered: root may look without that. */
  own: boolean;
  /** Of all runs: those of teams in it; absent: whichever. */
  view?: View;
}

/** `team.read` for what is only looked at, `team.work` for the rest. */
type TeamAction = Extract<Action, 'team.read' | 'team.work'>;

/**
 * The actor that a user acts as. Throws `run not found`, `unknown actor: <id>`, also for members of teams that the caller
 * does not see, and `not allowed to act as <id>`.
 */
export function mustActAs(
  reader: Reader,
  caller: Caller,
  action: TeamAction,
  asked: string,
  run_id?: string,
): Acting {
  if (run_id !== undefined) {
    const { team, run } = mustFindRun(reader, caller, action, run_id);
    return { run, ...acting(caller, actorOfRun(reader, team, run, asked)) };
  }
  const actor = actorAnywhere(reader, caller, action, asked);
  return { run: null, ...acting(caller, actor), ...ofTeams(caller, actor) };
}

/** Throws `unknown actor: <id>`. */
export function actorOfRun(reader: Reader, team: TeamRow, run: RunRow, asked: string): Actor {
  return resolveActor(reader, { team, spec: specOf(run), user_id: run.created_by }, asked);
}

function acting(caller: Caller, actor: Actor): Pick<Acting, 'actor_id' | 'own'> {
  const { actor_id } = actor;
  const as = actedAs(actor);
  if (!mayActAs(caller, as)) throw notAllowedAs(actor_id);
  return { actor_id, own: isOwn(caller, as) };
}

/**
 * A human is the same actor in every team, also in one that they are no longer a human of, or that the token in use is not
 * for.
 */
export function ofTeams(caller: Caller, { kind }: Pick<Actor, 'kind'>): { view?: View } {
  return kind === 'human' ? { view: viewOf(caller) } : {};
}

function actedAs(actor: Actor): ActedAs {
  if (actor.kind === 'human') return actor;
  return { kind: 'member', outside: actor.member.agent === null };
}

function actorAnywhere(reader: Reader, caller: Caller, action: TeamAction, asked: string): Actor {
  const username = usernameOf(asked);
  if (username !== null) return humanAnywhere(reader, caller, asked, username);
  const team = findTeam(reader, asked.slice(asked.lastIndexOf('@') + 1));
  if (!team || decide(caller, action, teamResource(reader, team)) !== 'allow') throw unknown(asked);
  return resolveActor(reader, { team, spec: JSON.parse(team.spec), user_id: team.created_by }, asked);
}

/** Whether there are others is root's to know. */
function humanAnywhere(reader: Reader, caller: Caller, actor_id: string, username: string): Actor {
  if (caller.role !== 'root' && username !== caller.username) throw notAllowedAs(actor_id);
  const user = reader.get(reader.sql.selectFrom('users').select('id').where('username', '=', username));
  if (!user) throw unknown(actor_id);
  return { kind: 'human', actor_id, role: 'human', user_id: user.id, username };
}

function unknown(actor_id: string) {
  return invalid(`unknown actor: ${actor_id}`, 'unknown_actor');
}
