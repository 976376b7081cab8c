import { describe, expect, it } from 'vitest';
import type { Caller, Role } from '../features/accounts/rules.ts';
import { type Grant, type Limits, type Scope, scopes } from './grant.ts';
import {
  type Action,
  actions,
  authorize,
  type Decision,
  decide,
  grantableScopes,
  newGrant,
  type Owned,
  scopeOf,
} from './policy.ts';
import { problems } from './problem.ts';

function caller(user_id: string, role: Role): Caller {
  return { user_id, username: user_id, role, token_id: `tok_${user_id}`, grant: null, ip: null };
}
const root = caller('usr_root', 'root');
const ada = caller('usr_ada', 'user');
const bob = caller('usr_bob', 'user');
const ofAda: Owned = {
  ...{ owner_id: ada.user_id, human_ids: [ada.user_id], agent_id: 'agt_1', team_id: 'team_1' },
};
const withToken = (who: Caller, scopes_of_token: readonly Scope[], limits: Limits | null = null): Caller => ({
  ...who,
  grant: { scopes: scopes_of_token, limits },
});

/** Per action: anonymous, another user, the owner, root. Written by hand, so that a loosened rule fails here. */
const matrix: Record<Action, [Decision, Decision, Decision, Decision]> = {
  'session.open': ['allow', 'allow', 'allow', 'allow'],
  'api.describe': ['unauthenticated', 'allow', 'allow', 'allow'],
  'self.read': ['unauthenticated', 'allow', 'allow', 'allow'],
  'self.list': ['unauthenticated', 'allow', 'allow', 'allow'],
  'self.change': ['unauthenticated', 'allow', 'allow', 'allow'],
  'agents.list': ['unauthenticated', 'allow', 'allow', 'allow'],
  'agents.create': ['unauthenticated', 'allow', 'allow', 'allow'],
  'presets.list': ['unauthenticated', 'allow', 'allow', 'allow'],
  'nodes.list': ['unauthenticated', 'allow', 'allow', 'allow'],
  'repositories.list': ['unauthenticated', 'allow', 'allow', 'allow'],
  'reviews.list': ['unauthenticated', 'allow', 'allow', 'allow'],
  'teams.list': ['unauthenticated', 'allow', 'allow', 'allow'],
  'teams.create': ['unauthenticated', 'allow', 'allow', 'allow'],
  'agent.read': ['unauthenticated', 'hide', 'allow', 'allow'],
  'agent.mark_seen': ['unauthenticated', 'hide', 'allow', 'allow'],
  'agent.change': ['unauthenticated', 'hide', 'allow', 'allow'],
  'agent.drive': ['unauthenticated', 'hide', 'allow', 'allow'],
  'agent.delete': ['unauthenticated', 'hide', 'allow', 'allow'],
  'agent.forget': ['unauthenticated', 'root_required', 'root_required', 'allow'],
  'review.read': ['unauthenticated', 'hide', 'allow', 'allow'],
  'review.answer': ['unauthenticated', 'hide', 'allow', 'allow'],
  'mailbox.read': ['unauthenticated', 'allow', 'allow', 'allow'],
  'mailbox.use': ['unauthenticated', 'allow', 'allow', 'allow'],
  'team.read': ['unauthenticated', 'hide', 'allow', 'allow'],
  'team.change': ['unauthenticated', 'hide', 'allow', 'allow'],
  'team.work': ['unauthenticated', 'hide', 'allow', 'allow'],
  'task.change': ['unauthenticated', 'hide', 'allow', 'allow'],
  'run.delete': ['unauthenticated', 'hide', 'allow', 'allow'],
  'team.delete': ['unauthenticated', 'hide', 'allow', 'allow'],
  'users.manage': ['unauthenticated', 'root_required', 'root_required', 'allow'],
  'nodes.manage': ['unauthenticated', 'root_required', 'root_required', 'allow'],
  'audit.read': ['unauthenticated', 'root_required', 'root_required', 'allow'],
  'config.manage': ['unauthenticated', 'root_required', 'root_required', 'allow'],
  'push.manage': ['unauthenticated', 'root_required', 'root_required', 'allow'],
  'cluster.read': ['unauthenticated', 'root_required', 'root_required', 'allow'],
  'agents.stop_all': ['unauthenticated', 'root_required', 'root_required', 'allow'],
  'metrics.read': ['unauthenticated', 'root_required', 'root_required', 'allow'],
};

describe('policy', () => {
  it('decides every action for anonymous callers, other users, the owner and root', () => {
    const decided = Object.fromEntries(
      actions.map((action) => [action, [null, bob, ada, root].map((who) => decide(who, action, ofAda))]),
    );
    expect(decided).toEqual(matrix);
  });

  it("lets a team's human members do what the team may, and nothing else", () => {
    const ofTeam = { ...ofAda, human_ids: [ada.user_id, bob.user_id] };
    const allowed = actions.filter(
      (action) => decide(bob, action, ofTeam) === 'allow' && decide(bob, action, ofAda) !== 'allow',
    );
    expect(allowed.toSorted()).toEqual([
      'agent.mark_seen',
      'agent.read',
      'review.answer',
      'review.read',
      'task.change',
      'team.change',
      'team.read',
      'team.work',
    ]);
  });

  it('lets people who have left a team do nothing with what they own in it', () => {
    const left = { ...ofAda, human_ids: [bob.user_id] };
    const decided = actions.filter((action) => decide(ada, action, left) !== decide(bob, action, ofAda));
    expect(decided).toEqual([]);
    expect(decide(ada, 'agent.read', { ...ofAda, human_ids: [], team_id: null })).toBe('allow');
  });

  it('denies an unknown action, even to root', () => {
    for (const name of ['agent.fly', 'constructor', '__proto__', 'toString'])
      expect(decide(root, name as Action)).toBe('forbidden');
  });

  it('denies a caller with an unknown role', () => {
    expect(decide({ ...ada, role: 'admin' as Role }, 'agents.list')).toBe('forbidden');
  });

  it("hides another user's resource behind the resource's own message", () => {
    expect(() => authorize(bob, 'agent.read', ofAda, problems.agentNotFound)).toThrow('agent not found');
    expect(() => authorize(bob, 'agent.read', ofAda)).toThrow('not found');
    expect(() => authorize(ada, 'agent.read', ofAda)).not.toThrow();
  });

  it("throws the contract's `root required` and `missing authorization token`", () => {
    expect(() => authorize(ada, 'users.manage')).toThrow('root required');
    expect(() => authorize(null, 'self.read')).toThrow('missing authorization token');
  });
});

/** The scope of each action, written by hand for the same reason. */
const scopeTable: Record<Action, Scope | null> = {
  'session.open': null,
  'api.describe': 'read',
  'self.read': 'read',
  'self.list': 'read',
  'self.change': 'manage',
  'agents.list': 'read',
  'agents.create': 'manage',
  'presets.list': 'read',
  'nodes.list': 'read',
  'repositories.list': 'read',
  'reviews.list': 'read',
  'teams.list': 'read',
  'teams.create': 'manage',
  'agent.read': 'read',
  'agent.mark_seen': 'manage',
  'agent.change': 'manage',
  'agent.drive': 'operate',
  'agent.delete': 'manage',
  'agent.forget': 'admin',
  'review.read': 'read',
  'review.answer': 'operate',
  'mailbox.read': 'read',
  'mailbox.use': 'operate',
  'team.read': 'read',
  'team.change': 'manage',
  'team.work': 'operate',
  'team.delete': 'manage',
  'task.change': 'manage',
  'run.delete': 'manage',
  'users.manage': 'admin',
  'nodes.manage': 'admin',
  'audit.read': 'admin',
  'config.manage': 'admin',
  'push.manage': 'admin',
  'cluster.read': 'admin',
  'agents.stop_all': 'admin',
  'metrics.read': 'metrics',
};

/** Actions that a token limited to agents or teams may never do. */
const unlimitedOnly: Action[] = [
  'agent.forget',
  'agents.create',
  'agents.stop_all',
  'audit.read',
  'cluster.read',
  'config.manage',
  'metrics.read',
  'nodes.manage',
  'push.manage',
  'repositories.list',
  'self.change',
  'self.list',
  'teams.create',
  'users.manage',
];

describe('scopes of tokens', () => {
  it('gives each action one scope', () => {
    expect(Object.fromEntries(actions.map((action) => [action, scopeOf(action)]))).toEqual(scopeTable);
  });

  it.each(scopes)('allows a token with scope %s only the actions of that scope', (scope) => {
    for (const action of actions) {
      const of_scope = [null, scope].includes(scopeTable[action]);
      expect([action, decide(withToken(root, [scope]), action, ofAda)]).toEqual([
        action,
        of_scope ? 'allow' : 'lacks_scope',
      ]);
    }
  });

  it('never allows a token more than its user', () => {
    const limits = { agent_ids: [ofAda.agent_id!], team_ids: [ofAda.team_id!] };
    for (const who of [ada, bob, root])
      for (const grant of [
        { scopes, limits: null },
        { scopes, limits },
      ] satisfies Grant[])
        for (const action of actions)
          for (const resource of [ofAda, { ...ofAda, human_ids: [ada.user_id, bob.user_id] }])
            if (decide({ ...who, grant }, action, resource) === 'allow')
              expect([who.username, action, decide(who, action, resource)]).toEqual([
                who.username,
                action,
                'allow',
              ]);
  });

  it('checks for root before scopes', () => {
    expect(decide(withToken(ada, []), 'users.manage')).toBe('root_required');
  });

  it('names the missing scope', () => {
    expect(() => authorize(withToken(ada, ['read']), 'agent.drive', ofAda)).toThrow(
      'token lacks scope operate',
    );
  });
});

describe('tokens limited to agents or teams', () => {
  const reach = (resource: Owned, limits: Partial<Limits>) =>
    decide(withToken(ada, scopes, { agent_ids: [], team_ids: [], ...limits }), 'agent.read', resource);
  const agent = { owner_id: ada.user_id, agent_id: 'agt_1', team_id: null };
  const inTeam = (team_id: string) => ({ ...agent, team_id, human_ids: [ada.user_id] });

  it('can access their agents, and the agents of their teams', () => {
    expect(reach(agent, { agent_ids: ['agt_1'] })).toBe('allow');
    expect(reach(inTeam('team_1'), { team_ids: ['team_1'] })).toBe('allow');
    expect(reach({ ...inTeam('team_1'), agent_id: null }, { team_ids: ['team_1'] })).toBe('allow');
  });

  it('cannot access anything else that their user owns', () => {
    expect(reach(agent, { agent_ids: ['agt_2'], team_ids: ['team_1'] })).toBe('hide');
    expect(reach(inTeam('team_2'), { team_ids: ['team_1'] })).toBe('hide');
    expect(reach({ ...inTeam('team_1'), agent_id: null }, { agent_ids: ['agt_1'] })).toBe('hide');
    expect(reach({ ...agent, agent_id: null }, { agent_ids: ['agt_1'], team_ids: ['team_1'] })).toBe('hide');
    expect(reach(agent, {})).toBe('hide');
  });

  it('cannot access a listed agent that their user may not see', () => {
    const limits = { agent_ids: ['agt_1'], team_ids: ['team_1'] };
    expect(decide(withToken(bob, scopes, limits), 'agent.read', ofAda)).toBe('hide');
  });

  it('cannot do anything beyond agents and teams, even if they belong to root', () => {
    const limits = { agent_ids: ['agt_1'], team_ids: ['team_1'] };
    const refused = actions.filter(
      (action) => decide(withToken(root, scopes, limits), action, ofAda) === 'limited',
    );
    expect(refused.toSorted()).toEqual(unlimitedOnly);
    expect(() => authorize(withToken(ada, scopes, limits), 'agents.create')).toThrow(
      'token is limited to certain agents or teams',
    );
  });
});

describe('the grant of a new token', () => {
  it('defaults to everything that the role allows except `admin`', () => {
    expect(newGrant('root', {})).toEqual({ scopes: ['read', 'operate', 'manage', 'metrics'], limits: null });
    expect(newGrant('user', {})).toEqual({ scopes: ['read', 'operate', 'manage'], limits: null });
    expect(newGrant('root', { agent_ids: ['a', 'a'] })).toEqual({
      scopes: ['read', 'operate', 'manage'],
      limits: { agent_ids: ['a'], team_ids: [] },
    });
  });

  it('has the requested scopes, without duplicates, in a fixed order', () => {
    expect(newGrant('root', { scopes: ['metrics', 'read', 'read'] }).scopes).toEqual(['read', 'metrics']);
  });

  it.each(['admin', 'metrics'] as const)('has %s only for root, and only without limits', (scope) => {
    expect(newGrant('root', { scopes: [scope] }).scopes).toEqual([scope]);
    expect(() => newGrant('user', { scopes: ['read', scope] })).toThrow(
      `scopes must not contain ${scope}: only root may grant it`,
    );
    expect(() => newGrant('root', { scopes: [scope], team_ids: ['team_1'] })).toThrow(
      `scopes must not contain ${scope}: the token is limited to agents or teams`,
    );
  });

  it('offers a role the scopes with at least one action that it may do', () => {
    expect(grantableScopes('root')).toEqual(scopes);
    expect(grantableScopes('user')).toEqual(['read', 'operate', 'manage']);
  });
});
