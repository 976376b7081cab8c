/**
 * Determines as which actor, and in which team and run, a call is made. An agent's session is one member in one run;
 * an operator names both.
 */

import { type View, viewOf } from '../../core/policy.ts';
import { invalid, problems } from '../../core/problem.ts';
import type { Reader } from '../../store/store.ts';
import { findUserByName, oldestRoots } from '../../store/users.ts';
import type { Caller } from '../accounts/rules.ts';
import { getParticipants } from '../runs/participants.ts';
import { findRun, openRuns, type RunRow, runOfNum } from '../runs/queries/runs.ts';
import type { Commander } from '../runs/run-commands.ts';
import { type Actor, memberActor, resolveActor } from '../teams/participants.ts';
import { findTeam, type TeamRow, teamNumsInView, teamOfNum } from '../teams/queries.ts';
import type { Member, TeamSpec } from '../teams/rules/team.ts';
import { type ActorCaller, actingAs, humanActorId, parseUsername } from './rules/actor.ts';
import type { ActorRole } from './rules/rights.ts';

export interface ActorRequestContext {
  actor_id?: string | undefined;
  run_id?: string | undefined;
}

/** Who acts, and where. */
interface PartyBase {
  actor_id: string;
  role: ActorRole;
  team: TeamRow | null;
  run: RunRow | null;
}

export type Acting =
  | (PartyBase & { kind: 'member'; team: TeamRow; member: Member })
  | (PartyBase & { kind: 'human'; caller: Caller });

export type RunParty = Acting & { team: TeamRow; run: RunRow };

/** Whose mail and triggers a call is about. */
export interface Inbox {
  actor_id: string;
  /** Null: all runs. */
  run_num: number | null;
  /** For all runs: only those of these teams; absent: no filter. */
  view?: View;
}

/** Throws `not allowed to act as <actor_id>`, `unknown actor: <id>`, `run not found` and `actor_id is required`. */
export async function actAs(
  reader: Reader,
  caller: ActorCaller,
  context: ActorRequestContext,
): Promise<Acting> {
  const who = actingAs(caller, context.actor_id);
  if (who === null) throw invalid('actor_id is required', 'actor_id_required');
  const { team, run } = await resolveTeamAndRun(reader, caller, who, context.run_id);
  if (team === null) return actAsHuman(reader, caller, who);
  const actor = await resolveActor(reader, getParticipants(team, run), who);
  return { ...(await toParty(reader, caller, actor)), team, run };
}

/**
 * Like `actAs`, but an operator who names no actor acts as the first root user. A call with the shared secret that names
 * its session is the session's, not an operator's.
 */
export async function actAsOperator(
  reader: Reader,
  caller: ActorCaller,
  context: ActorRequestContext,
): Promise<Acting> {
  const { session } = caller;
  const root =
    session === null && actingAs(caller, context.actor_id) === null ? await firstRoot(reader) : null;
  return actAs(reader, caller, root === null ? context : { ...context, actor_id: humanActorId(root) });
}

/** Like `actAs`, in a run: the named one, the session's own, or the only open one. */
export async function actInRun(
  reader: Reader,
  caller: ActorCaller,
  context: ActorRequestContext,
): Promise<RunParty> {
  const acting = await actAs(reader, caller, context);
  const run = acting.run ?? (await requireOnlyOpenRun(reader, acting));
  if (acting.run === null) return actInRun(reader, caller, { ...context, run_id: run.id });
  return { ...acting, team: acting.team!, run };
}

/** Who makes a change, for the audit log. An agent's address is not recorded. */
export function commanderOf({ session, ip }: ActorCaller, acting: Acting): Commander {
  const { actor_id } = acting;
  const user_id = acting.kind === 'human' ? acting.caller.user_id : null;
  return session === null ? { user_id, ip, actor_id, operator: true } : { user_id, ip: null, actor_id };
}

/** The actor's team as defined in the run, or as the next run would have it. */
export function getSpec(team: TeamRow, run: RunRow | null): TeamSpec {
  return getParticipants(team, run).spec;
}

/**
 * The inbox of the acting actor. A member is the same actor in every run of its team, but an agent of one run has no access to
 * other runs.
 */
export function getInbox(acting: Acting): Inbox {
  const { actor_id, run } = acting;
  const of_all = run === null && acting.kind === 'human';
  return { actor_id, run_num: run?.num ?? null, ...(of_all && teamView(acting.caller, acting)) };
}

/**
 * A person is the same actor in every team, even in one that they no longer belong to, or that the current token does
 * not cover.
 */
export function teamView(caller: Caller, { kind }: Pick<Actor, 'kind'>): { view?: View } {
  return kind === 'human' ? { view: viewOf(caller) } : {};
}

async function resolveTeamAndRun(
  reader: Reader,
  { session }: ActorCaller,
  who: string,
  run_id: string | undefined,
): Promise<{ team: TeamRow | null; run: RunRow | null }> {
  const member = session?.member ?? null;
  const own = member !== null && who === `${member.member_id}@${member.team_id}` ? member : null;
  const session_run = own?.run_num == null ? null : ((await runOfNum(reader, own.run_num)) ?? null);
  const run = run_id === undefined ? session_run : ((await findRun(reader, run_id)) ?? null);
  if (run_id !== undefined && run === null) throw problems.runNotFound();
  // An agent of one run has no access to other runs of its team.
  if (session !== null && run !== null && run.num !== own?.run_num) throw problems.runNotFound();
  if (run !== null) return { team: (await teamOfNum(reader, run.team_num))!, run };
  const team_id = /@(.+)$/.exec(who)?.[1];
  return { team: (team_id !== undefined && (await findTeam(reader, team_id))) || null, run: null };
}

async function toParty(
  reader: Reader,
  { ip }: ActorCaller,
  actor: Actor,
): Promise<
  | { kind: 'member'; actor_id: string; role: ActorRole; member: Member }
  | { kind: 'human'; actor_id: string; role: ActorRole; caller: Caller }
> {
  if (actor.kind === 'member') return actor;
  const { actor_id, username } = actor;
  return { kind: 'human', actor_id, role: 'human', caller: (await findCaller(reader, username, ip))! };
}

async function actAsHuman(reader: Reader, { ip }: ActorCaller, who: string): Promise<Acting> {
  const caller = await findCaller(reader, parseUsername(who) ?? '', ip);
  if (!caller) throw invalid(`unknown actor: ${who}`, 'unknown_actor');
  return { kind: 'human', actor_id: who, role: 'human', caller, team: null, run: null };
}

async function findCaller(reader: Reader, username: string, ip: string | null): Promise<Caller | null> {
  const user = await findUserByName(reader, username);
  return user ? { user_id: user.id, username, role: user.role, token_id: '', grant: null, ip } : null;
}

/** The name of the oldest root user. */
async function firstRoot(reader: Reader): Promise<string | null> {
  return (await oldestRoots(reader, 1))[0]?.username ?? null;
}

async function requireOnlyOpenRun(reader: Reader, acting: Acting): Promise<RunRow> {
  const team_nums = acting.team !== null ? [acting.team.num] : await listTeamNums(reader, acting);
  const open: RunRow[] = [];
  for (const num of team_nums) open.push(...(await openRuns(reader, num)));
  if (open.length === 1) return open[0]!;
  const why = open.length === 0 ? 'no run is open' : `open runs are ${open.map(({ id }) => id).join(', ')}`;
  throw invalid(`run_id is required: ${why}`, 'run_id_required');
}

async function listTeamNums(reader: Reader, acting: Acting): Promise<number[]> {
  if (acting.kind !== 'human') return [];
  return teamNumsInView(reader, { user_id: acting.caller.user_id, limits: null });
}

/** The team as its members see it: everyone who can receive mail. */
export function listPeers(team: TeamRow, spec: TeamSpec, humans: readonly string[]) {
  const members = spec.members.map((member) => {
    const { actor_id, role } = memberActor({ team, spec }, member);
    const { member_id, description, skills } = member;
    return { actor_id, member_id, role: role as ActorRole, description, skills };
  });
  const people = humans.map((actor_id) => {
    const role: ActorRole = 'human';
    return { actor_id, member_id: null, role, description: '', skills: [] };
  });
  return [...members, ...people];
}
