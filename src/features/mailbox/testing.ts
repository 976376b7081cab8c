/** The fixture for tests of features with a mailbox. Notices to leaders are collected instead of sent. */
import { FeaturesFixture } from '../../testing/features-fixture.ts';
import { type MailboxFeature, openMailbox } from './index.ts';

export type MailFixture = FeaturesFixture & Pick<MailboxFeature, 'mailbox' | 'triggers'>;

export async function openMailFixture(): Promise<MailFixture> {
  let opened: MailboxFeature | null = null;
  const fixture = await FeaturesFixture.make(null, null, (core, needs) => {
    opened = openMailbox(core, needs);
    const { notifyLeader: _, ...extensions } = opened.extensions!;
    return { ...opened, extensions };
  });
  // The fixture opens the feature again after a restart.
  return Object.defineProperties(fixture, {
    mailbox: { get: () => opened!.mailbox },
    triggers: { get: () => opened!.triggers },
  }) as MailFixture;
}
