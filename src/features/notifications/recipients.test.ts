import { expect, test } from 'vitest';
import { reviewMessage } from './messages.ts';
import { closingText } from './recipients.ts';

test('once its subject is deleted, only a notification that was certainly sent is replaced with its title', () => {
  const review = { id: 'rev_1', agent_name: 'fix-cart', tool_call: {} };
  const message = { ...reviewMessage(review, { with_commands: true }), waiting: 1 };
  const reader = { user_id: 'usr_1', token_id: 'tok_1', username: 'ben', role: 'user' } as const;
  const replace = (sent_at: number | null) =>
    closingText(reader, null, message, { sent_at, answered_by: 'ana' });
  expect(replace(1000)).toMatchObject({ title: 'fix-cart needs you', body: 'No longer needed' });
  expect(replace(null)).toMatchObject({ title: 'svc', body: 'No longer needed', path: '/' });
});
