/**
 * Announces to followers of the fleet feed whose mail has changed. Messages have no entries in the feed: actors may send many, and
 * clients show few.
 */
import { Announcer } from '../../events/announcer.ts';
import type { Core } from '../feature.ts';
import { limits } from './limits.ts';
import { listReceivers } from './queries/mail.ts';

export function announcerOfMail({ store, feed, log }: Pick<Core, 'store' | 'feed' | 'log'>): Announcer {
  return new Announcer({
    ...{ store, feed, log },
    kind: 'mail',
    field: 'mail',
    delay_ms: limits.mail_announced_ms,
    find: async (reader, nums) =>
      (await listReceivers(reader, nums)).map(({ run_id, to_actor_id, team_num, team_created_by }) => ({
        ...{ owner_id: team_created_by, team_num, agent_id: null },
        record: { run_id, to_actor_id },
      })),
  });
}
