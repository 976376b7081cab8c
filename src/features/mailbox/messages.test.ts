import { expect, test } from 'vitest';
import { limits } from './limits.ts';
import { mailText } from './messages.ts';
import type { MailRow } from './queries/mail.ts';

const mail = (payload: string) =>
  ({ num: 1, from_actor_id: 'lead@team_1', delivered_at: null, payload }) as MailRow;

test('a long message is truncated, and says how much is left', () => {
  const text = mailText([mail('x'.repeat(limits.mail_named_chars + 5))]);
  expect(text).toMatch(/x… \(5 more characters: svc actor inbox\)$/);
});

test('cuts no character of a message in half', () => {
  for (const pad of ['', 'x']) {
    const text = mailText([mail(pad + '😀'.repeat(limits.mail_named_chars))]);
    expect(text.isWellFormed()).toBe(true);
  }
});
