import { describe, expect, it } from 'vitest';
import { auditEvents } from '../../../features/audit/rules/audit.ts';
import type { AuditRecord } from '../../api/queries.ts';
import { agentNames, type Names, sentenceOf } from './sentences.ts';

const known: Record<string, string> = {
  usr_1: 'ana',
  usr_2: 'ben',
  agt_1: 'fix-login',
  node_1: 'gpu',
  team_1: 'shop',
};
const find = (id: string) => known[id] ?? id;
const names: Names = { user: find, agent: find, node: find, team: find };

function read(record: Partial<AuditRecord> & Pick<AuditRecord, 'event'>): string {
  const { actor, text } = sentenceOf(
    { agent_id: null, user_id: null, details: {}, ...record } as AuditRecord,
    names,
  );
  return `${actor} ${text}`;
}

describe('the sentence of an audit record', () => {
  it.each(auditEvents)('exists for %s, with and without details', (event) => {
    const details = {
      ...{ name: 'a-name', node_id: 'node_1', subject_id: 'usr_2', username: 'ben', title: 'A title' },
      ...{ run_id: 'run_1', step_key: 'build', to_actor_id: 'tester', decision: 'allow' },
    };
    const full = read({ event, user_id: 'usr_1', agent_id: 'agt_1', details });
    expect(full).toMatch(/^(ana|Somebody) [a-z]/);
    for (const sentence of [full, read({ event })]) {
      expect(sentence).not.toMatch(/undefined|null|\[object|\s{2}|\s$/);
      expect(sentence).not.toContain(event);
    }
  });
  it('names the actor, the action and the object', () => {
    const by_ana = { user_id: 'usr_1', agent_id: 'agt_1' };
    expect(read({ event: 'agent_started', ...by_ana })).toBe('ana started agent fix-login');
    expect(read({ event: 'permission_reviewed', ...by_ana, details: { decision: 'deny' } })).toBe(
      'ana rejected a request of agent fix-login',
    );
    expect(read({ event: 'agent_restarted', agent_id: 'agt_1' })).toBe('svc restarted agent fix-login');
    expect(
      read({ event: 'step_started', details: { actor_id: 'tester', step_key: 'test', run_id: 'run_1' } }),
    ).toBe('tester started step test of run_1');
    expect(read({ event: 'agent_stopped', ...by_ana })).toBe('ana stopped agent fix-login');
    const restart = { restart_at: '2026-01-01T00:00:00Z' };
    expect(read({ event: 'agent_stopped', ...by_ana, details: restart })).toBe(
      'ana cancelled the restart of agent fix-login',
    );
    const run = { run_id: 'run_1', team_id: 'team_1', number: 4 };
    expect(read({ event: 'run_created', user_id: 'usr_1', details: run })).toBe('ana started run 4 of shop');
    const deleted = { ...run, team_id: 'team_2' };
    expect(read({ event: 'run_deleted', user_id: 'usr_1', details: deleted })).toBe('ana deleted run 4');
    expect(read({ event: 'task_updated', user_id: 'usr_1', details: { title: 'Ship it' } })).toBe(
      'ana changed task Ship it',
    );
    expect(read({ event: 'user_login_failed', details: { username: 'eve' } })).toBe(
      'Somebody failed to sign in as eve',
    );
  });
  it('says what was allowed, and with which option', () => {
    const review = (details: AuditRecord['details']) =>
      read({ event: 'permission_reviewed', user_id: 'usr_1', agent_id: 'agt_1', details });
    const names_of_it = { option_name: 'Allow once', title: 'Write notes.md' };
    expect(review({ decision: 'allow', option_id: 'o1', outcome: 'selected', ...names_of_it })).toBe(
      'ana allowed “Write notes.md” for agent fix-login with “Allow once”',
    );
    // Records from before these names were kept.
    expect(review({ decision: 'deny', option_id: 'reject-once', outcome: 'selected' })).toBe(
      'ana rejected a request of agent fix-login with “reject-once”',
    );
    expect(review({ decision: null, option_id: null, outcome: 'cancelled', title: 'Write notes.md' })).toBe(
      'ana dismissed “Write notes.md” for agent fix-login',
    );
  });
  it('names members by their team', () => {
    const mail = (from_actor_id: string, to_actor_id: string) =>
      read({ event: 'message_sent', details: { from_actor_id, to_actor_id } });
    expect(mail('lead@team_1', 'user:ana')).toBe('lead of shop sent a message to ana');
    expect(mail('lead@team_9', 'build@team_1')).toBe('lead@team_9 sent a message to build of shop');
  });
  it('names an agent that is gone by the record, else by its id', () => {
    expect(
      read({ event: 'agent_deleted', user_id: 'usr_1', agent_id: 'agt_9', details: { name: 'old' } }),
    ).toBe('ana deleted agent old');
    expect(read({ event: 'agent_started', user_id: 'usr_1', agent_id: 'agt_9' })).toBe(
      'ana started agent agt_9',
    );
  });
  it('finds the newest name of an agent in its records', () => {
    const of_agent = (event: AuditRecord['event'], details: AuditRecord['details']) =>
      ({ event, agent_id: 'agt_9', user_id: null, details }) as AuditRecord;
    const created = of_agent('agent_created', { name: 'old', command: 'true' });
    expect(agentNames([of_agent('agent_deleted', { name: 'new' }), created]).get('agt_9')).toBe('new');
    expect(agentNames([of_agent('agent_configured', { name: 'mode' }), created]).get('agt_9')).toBe('old');
    expect(agentNames([of_agent('agent_started', {})]).size).toBe(0);
  });
  it('says whose password was changed', () => {
    const event = 'password_changed';
    expect(read({ event, user_id: 'usr_1', details: { subject_id: 'usr_1' } })).toBe(
      'ana changed the password',
    );
    expect(read({ event, user_id: 'usr_1', details: { subject_id: 'usr_2' } })).toBe(
      'ana changed the password of ben',
    );
  });
});
