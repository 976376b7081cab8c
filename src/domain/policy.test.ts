import { describe, expect, it } from 'vitest';
import { type Action, actions, authorize, type Decision, decide } from './policy.ts';
import { problems } from './problem.ts';
import type { Caller, Role } from './user.ts';

function caller(user_id: string, role: Role): Caller {
  return { user_id, username: user_id, role, token_id: `tok_${user_id}`, ip: null };
}
const root = caller('usr_root', 'root');
const ada = caller('usr_ada', 'user');
const bob = caller('usr_bob', 'user');
const ofAda = { owner_id: ada.user_id };

/** Per action: nobody, another user, the owner, root. Written out by hand, so that a loosened rule shows here. */
const matrix: Record<Action, [Decision, Decision, Decision, Decision]> = {
  'session.open': ['allow', 'allow', 'allow', 'allow'],
  'api.describe': ['unauthenticated', 'allow', 'allow', 'allow'],
  'self.read': ['unauthenticated', 'allow', 'allow', 'allow'],
  'self.change': ['unauthenticated', 'allow', 'allow', 'allow'],
  'agents.list': ['unauthenticated', 'allow', 'allow', 'allow'],
  'agents.create': ['unauthenticated', 'allow', 'allow', 'allow'],
  'presets.list': ['unauthenticated', 'allow', 'allow', 'allow'],
  'nodes.list': ['unauthenticated', 'allow', 'allow', 'allow'],
  'reviews.list': ['unauthenticated', 'allow', 'allow', 'allow'],
  'teams.list': ['unauthenticated', 'allow', 'allow', 'allow'],
  'teams.create': ['unauthenticated', 'allow', 'allow', 'allow'],
  'agent.read': ['unauthenticated', 'hide', 'allow', 'allow'],
  'agent.change': ['unauthenticated', 'hide', 'allow', 'allow'],
  'agent.drive': ['unauthenticated', 'hide', 'allow', 'allow'],
  'agent.delete': ['unauthenticated', 'hide', 'allow', 'allow'],
  'agent.forget': ['unauthenticated', 'root_required', 'root_required', 'allow'],
  'review.answer': ['unauthenticated', 'hide', 'allow', 'allow'],
  'mailbox.use': ['unauthenticated', 'allow', 'allow', 'allow'],
  'team.read': ['unauthenticated', 'hide', 'allow', 'allow'],
  'team.change': ['unauthenticated', 'hide', 'allow', 'allow'],
  'team.work': ['unauthenticated', 'hide', 'allow', 'allow'],
  'team.delete': ['unauthenticated', 'hide', 'allow', 'allow'],
  'users.manage': ['unauthenticated', 'root_required', 'root_required', 'allow'],
  'nodes.manage': ['unauthenticated', 'root_required', 'root_required', 'allow'],
  'audit.read': ['unauthenticated', 'root_required', 'root_required', 'allow'],
  'config.manage': ['unauthenticated', 'root_required', 'root_required', 'allow'],
  'push.manage': ['unauthenticated', 'root_required', 'root_required', 'allow'],
  'metrics.read': ['unauthenticated', 'root_required', 'root_required', 'allow'],
};

describe('policy', () => {
  it('decides every action for nobody, another user, the owner and root', () => {
    const decided = Object.fromEntries(
      actions.map((action) => [action, [null, bob, ada, root].map((who) => decide(who, action, ofAda))]),
    );
    expect(decided).toEqual(matrix);
  });

  it("lets a team's humans do what the team may, and nothing else", () => {
    const ofTeam = { ...ofAda, human_ids: [bob.user_id] };
    const allowed = actions.filter(
      (action) => decide(bob, action, ofTeam) === 'allow' && decide(bob, action, ofAda) !== 'allow',
    );
    expect(allowed.toSorted()).toEqual([
      'agent.read',
      'review.answer',
      'team.change',
      'team.read',
      'team.work',
    ]);
  });

  it('denies an action that it does not know, to root too', () => {
    for (const name of ['agent.fly', 'constructor', '__proto__', 'toString'])
      expect(decide(root, name as Action)).toBe('forbidden');
  });

  it('denies a caller whose role it does not know', () => {
    expect(decide({ ...ada, role: 'admin' as Role }, 'agents.list')).toBe('forbidden');
  });

  it("hides another user's resource behind the resource's own message", () => {
    expect(() => authorize(bob, 'agent.read', ofAda, problems.agentNotFound)).toThrow('agent not found');
    expect(() => authorize(bob, 'agent.read', ofAda)).toThrow('not found');
    expect(() => authorize(ada, 'agent.read', ofAda)).not.toThrow();
  });

  it('says `root required` and `missing authorization token` in the words of the contract', () => {
    expect(() => authorize(ada, 'users.manage')).toThrow('root required');
    expect(() => authorize(null, 'self.read')).toThrow('missing authorization token');
  });
});
