/**
 * The access policy: one pure function for HTTP, streams, RPC and the CLI. Every route names an action from this list, or
 * it does not compile. Anything that no rule allows is denied.
 */

import { type Caller, type Role, roles } from '../features/accounts/rules.ts';
import { type Grant, type Limits, type Scope, scopes } from './grant.ts';
import { invalid, lacksScope, type Problem, problems } from './problem.ts';

type Who = 'signed_in' | 'owner' | 'team' | 'root';
type Rule = readonly ['anyone'] | readonly [Who, Scope] | readonly [Who, Scope, 'unlimited'];

/**
 * For each action: who may do it, and the scope that an API token needs for it.
 *
 * `anyone`: no token needed. `signed_in`: every caller, for actions about themselves or about no particular resource; lists
 * show what the caller may see. `owner`: the resource's owner, and root. `team`: the owner, root, and the creator and the human
 * members of its team. In a team, an owner must be one of these. `root`: root only. `unlimited`: rejected for a token that is
 * limited to agents or teams, because the action affects more than those; this also applies to all `root` actions.
 */
const rules = {
  'session.open': ['anyone'],

  'api.describe': ['signed_in', 'read'],
  'self.read': ['signed_in', 'read'],
  'self.list': ['signed_in', 'read', 'unlimited'],
  'self.change': ['signed_in', 'manage', 'unlimited'],
  'agents.list': ['signed_in', 'read'],
  'agents.create': ['signed_in', 'manage', 'unlimited'],
  'nodes.list': ['signed_in', 'read'],
  'repositories.list': ['signed_in', 'read', 'unlimited'],
  'reviews.list': ['signed_in', 'read'],
  'presets.list': ['signed_in', 'read'],
  'teams.list': ['signed_in', 'read'],
  'teams.create': ['signed_in', 'manage', 'unlimited'],
  'mailbox.read': ['signed_in', 'read'],
  'mailbox.use': ['signed_in', 'operate'],

  'agent.read': ['team', 'read'],
  'agent.mark_seen': ['team', 'manage'],
  'agent.change': ['owner', 'manage'],
  'agent.drive': ['owner', 'operate'],
  'agent.delete': ['owner', 'manage'],
  'agent.forget': ['root', 'admin'],
  'agents.stop_all': ['root', 'admin'],
  'review.read': ['team', 'read'],
  'review.answer': ['team', 'operate'],

  'team.read': ['team', 'read'],
  'team.change': ['team', 'manage'],
  'team.work': ['team', 'operate'],
  'team.delete': ['owner', 'manage'],
  'task.change': ['team', 'manage'],
  'run.delete': ['owner', 'manage'],

  'users.manage': ['root', 'admin'],
  'nodes.manage': ['root', 'admin'],
  'audit.read': ['root', 'admin'],
  'config.manage': ['root', 'admin'],
  'push.manage': ['root', 'admin'],
  'cluster.read': ['root', 'admin'],
  'metrics.read': ['root', 'metrics'],
} as const satisfies Record<string, Rule>;

export type Action = keyof typeof rules;
export const actions = Object.keys(rules) as Action[];

/** The properties of a resource that determine access. */
export interface Owned {
  owner_id: string;
  /** Ids of the creator and the human members of its team, if it belongs to one. */
  human_ids?: readonly string[];
  /** The agent that it is or belongs to. */
  agent_id: string | null;
  /** The team that it is or belongs to. */
  team_id: string | null;
}

/**
 * `unauthenticated`: 401, no token. `hide`: 404 with the resource's own message, so that callers cannot find out what
 * others have. `root_required`: 401. `lacks_scope`, `limited`, `forbidden`: 403.
 */
export type Decision =
  | 'allow'
  | 'unauthenticated'
  | 'hide'
  | 'root_required'
  | 'lacks_scope'
  | 'limited'
  | 'forbidden';

/**
 * Without a resource, decides from the caller alone: an `owner` action then passes for every signed-in caller, and must be
 * decided again once the resource is known.
 */
export function decide(caller: Caller | null, action: Action, resource?: Owned): Decision {
  const rule = ruleOf(action);
  if (rule?.[0] === 'anyone') return 'allow';
  if (caller === null) return 'unauthenticated';
  if (rule === undefined || !roles.includes(caller.role)) return 'forbidden';
  const [who] = rule;
  if (who === 'root' && caller.role !== 'root') return 'root_required';
  const denial = denialFor(caller.grant, rule);
  if (denial !== null) return denial;
  if (who === 'signed_in' || who === 'root' || resource === undefined) return 'allow';
  return isWithin(caller.grant, resource) && hasAccess(caller, who, resource) ? 'allow' : 'hide';
}

function ruleOf(action: Action): Rule | undefined {
  return Object.hasOwn(rules, action) ? rules[action] : undefined;
}

/** Why a token may not do an action on any resource; null if it may. */
function denialFor(
  grant: Grant | null,
  [who, scope, reach]: Exclude<Rule, readonly ['anyone']>,
): Decision | null {
  if (grant === null) return null;
  if (!grant.scopes.includes(scope)) return 'lacks_scope';
  return grant.limits !== null && (who === 'root' || reach === 'unlimited') ? 'limited' : null;
}

function isWithin(grant: Grant | null, { agent_id, team_id }: Owned): boolean {
  if (grant === null || grant.limits === null) return true;
  const { agent_ids, team_ids } = grant.limits;
  return (
    (agent_id !== null && agent_ids.includes(agent_id)) || (team_id !== null && team_ids.includes(team_id))
  );
}

function hasAccess(
  { role, user_id }: Caller,
  who: 'owner' | 'team',
  { owner_id, team_id, human_ids = [] }: Owned,
): boolean {
  if (role === 'root') return true;
  if (team_id === null) return owner_id === user_id;
  // Whoever has left the team keeps no access to what they own in it.
  return human_ids.includes(user_id) && (who === 'team' || owner_id === user_id);
}

/** Throws unless the action is allowed. `hidden` creates the resource's 404, for example `problems.agentNotFound`. */
export function authorize(
  caller: Caller | null,
  action: Action,
  resource?: Owned,
  hidden: () => Problem = problems.notFound,
): void {
  switch (decide(caller, action, resource)) {
    case 'allow':
      return;
    case 'unauthenticated':
      throw problems.missingToken();
    case 'hide':
      throw hidden();
    case 'root_required':
      throw problems.rootRequired();
    case 'lacks_scope':
      throw lacksScope(scopeOf(action)!);
    case 'limited':
      throw problems.tokenLimited();
    default:
      throw problems.notAllowed();
  }
}

/** The scope that an API token needs for an action; null if no token is needed. */
export function scopeOf(action: Action): Scope | null {
  const [, scope] = rules[action] as Rule;
  return scope ?? null;
}

// --- lists --------------------------------------------------------------------------------------------------------------

/** What a list shows to a caller: the resources that `decide` allows them to read. */
export interface View {
  /** Resources of this user and of the user's teams; null: everyone's. */
  user_id: string | null;
  /** Of these, only what the token is limited to; null: all. */
  limits: Limits | null;
}

/** The view of a caller, for lists. */
export function viewOf({ role, user_id, grant }: Caller): View {
  return { user_id: role === 'root' ? null : user_id, limits: grant?.limits ?? null };
}

// --- grants -------------------------------------------------------------------------------------------------------------

/** The requested grant of a new token; absent and null both mean unspecified. */
export interface GrantRequest {
  scopes?: readonly Scope[] | undefined;
  agent_ids?: readonly string[] | null | undefined;
  team_ids?: readonly string[] | null | undefined;
}

/**
 * The grant of a new token for a user with this role. Without `scopes`: everything that the role and the limits allow,
 * except `admin`. Throws a 400 for scopes that the role or the limits rule out.
 */
export function newGrant(role: Role, { scopes: requested, agent_ids, team_ids }: GrantRequest): Grant {
  const limits =
    agent_ids || team_ids ? { agent_ids: unique(agent_ids ?? []), team_ids: unique(team_ids ?? []) } : null;
  const grantable = grantableScopes(role);
  const allowed = limits === null ? grantable : grantable.filter((scope) => !rootOnlyScopes.includes(scope));
  for (const scope of requested ?? []) {
    if (!grantable.includes(scope)) throw invalid(`scopes must not contain ${scope}: only root may grant it`);
    if (!allowed.includes(scope)) {
      throw invalid(`scopes must not contain ${scope}: the token is limited to agents or teams`);
    }
  }
  const granted = requested ?? allowed.filter((scope) => scope !== 'admin');
  return { scopes: scopes.filter((scope) => granted.includes(scope)), limits };
}

/** The scopes that contain at least one action that a role may do. */
export function grantableScopes(role: Role): Scope[] {
  return scopes.filter((scope) => role === 'root' || !rootOnlyScopes.includes(scope));
}

const rootOnlyScopes: readonly Scope[] = scopes.filter((scope) =>
  actions.every((action) => scopeOf(action) !== scope || rules[action][0] === 'root'),
);

function unique(ids: readonly string[]): string[] {
  return [...new Set(ids)];
}
