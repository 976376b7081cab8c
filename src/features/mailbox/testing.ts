/** The room for tests of features with a mailbox. Notices to leaders are collected instead of sent. */
import { LivesRoom } from '../../testing/lives.ts';
import { type MailboxFeature, openMailbox } from './index.ts';

export type MailFixture = LivesRoom & Pick<MailboxFeature, 'mailbox' | 'triggers'>;

export async function openMailFixture(): Promise<MailFixture> {
  let opened: MailboxFeature | null = null;
  const room = await LivesRoom.make(null, null, (core, needs) => {
    opened = openMailbox(core, needs);
    const { notifyLeader: _, ...extensions } = opened.extensions!;
    return { ...opened, extensions };
  });
  // The room opens the feature again after a restart.
  return Object.defineProperties(room, {
    mailbox: { get: () => opened!.mailbox },
    triggers: { get: () => opened!.triggers },
  }) as MailFixture;
}
