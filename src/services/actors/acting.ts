/**
 * As whom, in which team and run a call of an actor is made. An agent's session is one member in one run; the holder of
 * the shared secret names both.
 */
import { type ActorCaller, actingAs, humanActorId, usernameOf } from '../../domain/actor.ts';
import type { ActorRole } from '../../domain/actor-rights.ts';
import { invalid, problems } from '../../domain/problem.ts';
import type { Member, TeamSpec } from '../../domain/team.ts';
import type { Caller } from '../../domain/user.ts';
import { findRun, openRuns, type RunRow, runOfNum, specOf as specOfRun } from '../../store/runs.ts';
import type { Reader } from '../../store/store.ts';
import { findTeam, type TeamRow, teamOfNum } from '../../store/teams.ts';
import { type Actor, castMember, resolveActor } from '../teams/cast.ts';

export interface Asked {
  actor_id?: string | undefined;
  run_id?: string | undefined;
}

interface Somebody {
  actor_id: string;
  role: ActorRole;
  team: TeamRow | null;
  run: RunRow | null;
}

export type Acting =
  | (Somebody & { kind: 'member'; team: TeamRow; member: Member })
  | (Somebody & { kind: 'human'; caller: Caller });

export type ActingInRun = Acting & { team: TeamRow; run: RunRow };

/** Throws `not allowed to act as <actor_id>`, `unknown actor: <id>`, `run not found` and `actor_id is required`. */
export function actAs(reader: Reader, caller: ActorCaller, asked: Asked): Acting {
  const who = actingAs(caller, asked.actor_id);
  if (who === null) throw invalid('actor_id is required', 'actor_id_required');
  const { team, run } = placeOf(reader, caller, who, asked.run_id);
  if (team === null) return humanAlone(reader, caller, who);
  const spec = specOf(team, run);
  const user_id = run?.created_by ?? team.created_by;
  const actor = resolveActor(reader, { team, spec, user_id }, who);
  return { ...somebody(reader, caller, actor), team, run };
}

/**
 * As `actAs`; an operator, who holds the shared secret and names no actor, acts as the first root user. An agent does not
 * become one by knowing the secret: its calls come from its session.
 */
export function actAsOperator(reader: Reader, caller: ActorCaller, asked: Asked): Acting {
  const is_operator = caller.kind === 'secret' && caller.session === null;
  const root = is_operator && actingAs(caller, asked.actor_id) === null ? firstRoot(reader) : null;
  return actAs(reader, caller, root === null ? asked : { ...asked, actor_id: humanActorId(root) });
}

/** As `actAs`, in a run: the one that is named, or the session's own, or the only one that is open. */
export function actInRun(reader: Reader, caller: ActorCaller, asked: Asked): ActingInRun {
  const acting = actAs(reader, caller, asked);
  const run = acting.run ?? onlyOpenRun(reader, acting);
  if (acting.run === null) return actInRun(reader, caller, { ...asked, run_id: run.id });
  return { ...acting, team: acting.team!, run };
}

/** What the actor's team is in the run, or would be in the next one. */
export function specOf(team: TeamRow, run: RunRow | null): TeamSpec {
  return run ? specOfRun(run) : (JSON.parse(team.spec) as TeamSpec);
}

function placeOf(
  reader: Reader,
  { kind, session }: ActorCaller,
  who: string,
  run_id: string | undefined,
): { team: TeamRow | null; run: RunRow | null } {
  const member = session?.member ?? null;
  const own = member !== null && who === `${member.member_id}@${member.team_id}` ? member : null;
  const session_run = own?.run_num == null ? null : (runOfNum(reader, own.run_num) ?? null);
  const run = run_id === undefined ? session_run : (findRun(reader, run_id) ?? null);
  if (run_id !== undefined && run === null) throw problems.runNotFound();
  // An agent of one run has no say in the others of its team.
  if (kind === 'session' && run !== null && run.num !== own?.run_num) throw problems.runNotFound();
  if (run !== null) return { team: teamOfNum(reader, run.team_num)!, run };
  const team_id = /@(.+)$/.exec(who)?.[1];
  return { team: (team_id !== undefined && findTeam(reader, team_id)) || null, run: null };
}

function somebody(
  reader: Reader,
  { ip }: ActorCaller,
  actor: Actor,
):
  | { kind: 'member'; actor_id: string; role: ActorRole; member: Member }
  | { kind: 'human'; actor_id: string; role: ActorRole; caller: Caller } {
  if (actor.kind === 'member') return actor;
  const { actor_id, username } = actor;
  return { kind: 'human', actor_id, role: 'human', caller: callerOf(reader, username, ip)! };
}

function humanAlone(reader: Reader, { ip }: ActorCaller, who: string): Acting {
  const caller = callerOf(reader, usernameOf(who) ?? '', ip);
  if (!caller) throw invalid(`unknown actor: ${who}`, 'unknown_actor');
  return { kind: 'human', actor_id: who, role: 'human', caller, team: null, run: null };
}

function callerOf(reader: Reader, username: string, ip: string | null): Caller | null {
  const query = reader.sql.selectFrom('users').select(['id', 'role']).where('username', '=', username);
  const user = reader.get(query);
  return user ? { user_id: user.id, username, role: user.role, token_id: '', grant: null, ip } : null;
}

/** The name of the root user who has been here longest. */
function firstRoot(reader: Reader): string | null {
  const roots = reader.sql.selectFrom('users').select('username').where('role', '=', 'root');
  return reader.get(roots.orderBy('created_at').orderBy('id').limit(1))?.username ?? null;
}

function onlyOpenRun(reader: Reader, acting: Acting): RunRow {
  const team_nums = acting.team !== null ? [acting.team.num] : teamsOf(reader, acting);
  const open = team_nums.flatMap((num) => openRuns(reader, num));
  if (open.length === 1) return open[0]!;
  const why = open.length === 0 ? 'no run is open' : `open runs are ${open.map(({ id }) => id).join(', ')}`;
  throw invalid(`run_id is required: ${why}`, 'run_id_required');
}

function teamsOf(reader: Reader, acting: Acting): number[] {
  if (acting.kind !== 'human') return [];
  const { user_id } = acting.caller;
  const created = reader.sql.selectFrom('teams').select('num').where('created_by', '=', user_id);
  const joined = reader.sql
    .selectFrom('team_humans')
    .select('team_num as num')
    .where('user_id', '=', user_id);
  return reader.all(created.union(joined)).map(({ num }) => num);
}

/** The team as its members see it: everybody who can be written to. */
export function peersOf(team: TeamRow, spec: TeamSpec, humans: readonly string[]) {
  const members = spec.members.map((member) => {
    const { actor_id, role } = castMember({ team, spec }, member);
    const { member_id, description, skills } = member;
    return { actor_id, member_id, role: role as ActorRole, description, skills };
  });
  const people = humans.map((actor_id) => {
    const role: ActorRole = 'human';
    return { actor_id, member_id: null, role, description: '', skills: [] };
  });
  return [...members, ...people];
}
