/**
 * Who may do what: one pure function for HTTP, streams, RPC and the CLI. A route names an action of this list, or it
 * does not build; what no rule allows is denied.
 */
import { type Problem, problems } from './problem.ts';
import type { Caller } from './user.ts';

/**
 * `anyone`: without a token. `signed_in`: every caller, about themselves or about nothing in particular; lists show
 * what the caller may see. `owner`: the resource's owner, and root. `team`: they, and the humans of its team. `root`: root
 * alone.
 */
const rules = {
  'session.open': 'anyone',

  'api.describe': 'signed_in',
  'self.read': 'signed_in',
  'self.change': 'signed_in',
  'agents.list': 'signed_in',
  'agents.create': 'signed_in',
  'nodes.list': 'signed_in',
  'reviews.list': 'signed_in',
  'presets.list': 'signed_in',
  'teams.list': 'signed_in',
  'teams.create': 'signed_in',
  'mailbox.use': 'signed_in',

  'agent.read': 'team',
  'agent.change': 'owner',
  'agent.drive': 'owner',
  'agent.delete': 'owner',
  'agent.forget': 'root',
  'review.answer': 'team',

  'team.read': 'team',
  'team.change': 'team',
  'team.work': 'team',
  'team.delete': 'owner',

  'users.manage': 'root',
  'nodes.manage': 'root',
  'audit.read': 'root',
  'config.manage': 'root',
  'push.manage': 'root',
  'metrics.read': 'root',
} as const satisfies Record<string, 'anyone' | 'signed_in' | 'owner' | 'team' | 'root'>;

export type Action = keyof typeof rules;
export const actions = Object.keys(rules) as Action[];

/** What a resource is, as far as access goes. */
export interface Owned {
  owner_id: string;
  /** Ids of the users that its team has, where it belongs to one. */
  human_ids?: readonly string[];
}

/**
 * `unauthenticated`: 401, no token. `hide`: 404 with the resource's own message, so that nobody learns what others
 * have. `root_required`: 401. `forbidden`: 403.
 */
export type Decision = 'allow' | 'unauthenticated' | 'hide' | 'root_required' | 'forbidden';

/**
 * Decides from the caller alone when there is no resource: an `owner` action then passes for whoever is signed in, and
 * is decided again once the resource is known.
 */
export function decide(caller: Caller | null, action: Action, resource?: Owned): Decision {
  const rule = Object.hasOwn(rules, action) ? rules[action] : undefined;
  if (rule === 'anyone') return 'allow';
  if (caller === null) return 'unauthenticated';
  const root = caller.role === 'root';
  if (!root && caller.role !== 'user') return 'forbidden';
  switch (rule) {
    case 'signed_in':
      return 'allow';
    case 'owner':
      return root || resource === undefined || resource.owner_id === caller.user_id ? 'allow' : 'hide';
    case 'team': {
      const { owner_id = caller.user_id, human_ids = [] } = resource ?? {};
      return root || owner_id === caller.user_id || human_ids.includes(caller.user_id) ? 'allow' : 'hide';
    }
    case 'root':
      return root ? 'allow' : 'root_required';
    default:
      return 'forbidden';
  }
}

/** Throws unless allowed. `hidden` makes the 404 of the resource, for example `problems.agentNotFound`. */
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
    default:
      throw problems.notAllowed();
  }
}
