import { describe, expect, test } from 'vitest';
import { assigneeChoices, toBody, toChanges } from './fields.ts';

const fields = { title: 'Sell', description: '', assignee: 'dev', version: '3' };

describe('an assignee who is no longer a member', () => {
  test('is not sent again with other changes of the task', () => {
    const rest = { title: 'Sell', description: '', version: 3 };
    expect(toChanges({ assignee_member_id: 'dev' }, fields)).toEqual(rest);
    expect(toChanges({ assignee_member_id: null }, fields)).toEqual({ ...rest, assignee_member_id: 'dev' });
    const nobody = { ...fields, assignee: '' };
    expect(toChanges({ assignee_member_id: 'dev' }, nobody)).toEqual({ ...rest, assignee_member_id: null });
    expect(toChanges({ assignee_member_id: null }, nobody)).toEqual(rest);
  });

  test('is a choice of its own', () => {
    const members = [{ member_id: 'lead' }, { member_id: 'dev' }];
    const team = { spec: { members } } as Parameters<typeof assigneeChoices>[0];
    const labels = (assignee: string) => assigneeChoices(team, assignee).map(({ label }) => label);
    expect(labels('')).toEqual(['Unassigned', 'lead', 'dev']);
    expect(labels('dev')).toEqual(['Unassigned', 'lead', 'dev']);
    expect(labels('ops')).toEqual(['Unassigned', 'lead', 'dev', 'ops (no longer a member)']);
  });
});

test('a new task without an assignee has nobody', () => {
  expect(toBody({ ...fields, assignee: '' })).toEqual({
    title: 'Sell',
    description: '',
    assignee_member_id: null,
  });
});
