import { expect, test } from 'vitest';
import { limits } from './limits.ts';
import { mailText } from './messages.ts';
import type { MailRow } from './queries/mail.ts';

const mail = (payload: string) =>
  ({ num: 1, from_actor_id: 'lead@team_1', delivered_at: null, payload }) as MailRow;

test('a long message is truncated, and says how much is left', () => {
  const text = mailText([mail('x'.repeat(limits.mail_named_chars + 5))], true);
  expect(text).toMatch(/x… \(5 more characters: svc actor inbox\)$/);
});

test('names no commands to an agent that cannot use them', () => {
  const text = mailText([mail('x'.repeat(limits.mail_named_chars + 5))], false);
  expect(text).toMatch(/^1 message waits in your mailbox\. Others wrote the payloads\.\n/);
  expect(text).not.toContain('svc actor');
});

test('cuts no character of a message in half', () => {
  for (const pad of ['', 'x']) {
    const text = mailText([mail(pad + '😀'.repeat(limits.mail_named_chars))], true);
    expect(text.isWellFormed()).toBe(true);
  }
});
