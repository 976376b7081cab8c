import { expect, test } from 'vitest';
import { questionOutcome } from './question-outcome.ts';

const step = (
  status: 'running' | 'completed' | 'failed' | 'cancelled',
  answered_by: string | null,
  answer: unknown = null,
) => ({ status, answered_by, answer });

test('names who answered and what, and not the viewer', () => {
  expect(questionOutcome(step('running', 'leo', 'Rain'), 'ana')).toBe('Answered by leo: Rain');
  expect(questionOutcome(step('running', 'ana', 'Rain'), 'ana')).toBe('Answered: Rain');
  expect(questionOutcome(step('running', 'lead@tea_1', { title: 'Rain' }), 'ana')).toBe(
    'Answered by lead: {"title":"Rain"}',
  );
  expect(questionOutcome(step('running', 'leo'), 'ana')).toBe('Answered by leo');
});

test('shows the first line of an answer, at most 200 characters of it', () => {
  expect(questionOutcome(step('running', 'leo', 'Rain\nSun'), 'ana')).toBe('Answered by leo: Rain');
  expect(questionOutcome(step('running', 'leo', 'x'.repeat(500)), 'ana')).toBe(
    `Answered by leo: ${'x'.repeat(200)}…`,
  );
});

test('says what ended the wait instead of an answer', () => {
  expect(questionOutcome(step('completed', 'leo'), 'ana')).toBe('Completed by leo');
  expect(questionOutcome(step('failed', 'leo', 'an earlier answer'), 'ana')).toBe('Failed by leo');
  expect(questionOutcome(step('cancelled', null), 'ana')).toBe('No longer needed: the run was ended');
  expect(questionOutcome(undefined, 'ana')).toBe('No longer waiting');
});
