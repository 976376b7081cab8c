import { expect, test } from 'vitest';
import {
  elicitationMessage,
  questionMessage,
  reviewMessage,
  runMessage,
  runWaitMessage,
  signInMessage,
} from './messages.ts';
import { notificationTag } from './rules.ts';

test('notifications about what waits have the tags by which open pages close them', () => {
  const device = { with_commands: false };
  const agent_name = 'a';
  const run = { id: 'run_1', number: 1, team_id: 'team_1', team_name: 't' };
  const step = { run_id: 'run_1', step_key: 's/1', team_name: 't', member_id: 'm', question: '' };
  expect(reviewMessage({ id: 'rev_1', agent_name, tool_call: {} }, device).tag).toBe(
    notificationTag('permission', 'rev_1'),
  );
  expect(elicitationMessage({ id: 'eli_1', agent_name, mode: 'form', message: '' }, device).tag).toBe(
    notificationTag('elicitation', 'eli_1'),
  );
  expect(questionMessage(step, device).tag).toBe(notificationTag('question', 'run_1/s/1'));
  expect(runWaitMessage({ ...run, reason: '' }, device).tag).toBe(notificationTag('run', 'run_1'));
  expect(signInMessage({ id: 'agt_1', name: 'a' }).tag).toBe(notificationTag('sign_in', 'agt_1'));
  expect(runMessage({ ...run, status: 'completed' }).tag).not.toBe(notificationTag('run', 'run_1'));
});

test('a notification shows where the lines of a command end, and that it is cut', () => {
  const body = (title: string) =>
    reviewMessage({ id: 'rev_1', agent_name: 'a', tool_call: { title } }, { with_commands: true }).body;
  expect(body('npm test\r\n\n  curl x |  sh\n')).toBe('permission: npm test ⏎ curl x | sh');
  expect(body(`npm test #${'x'.repeat(1_000)}\ncurl`)).toMatch(/^permission: npm test #x+…$/);
});
