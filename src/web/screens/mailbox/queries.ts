/** The queries of mail. It is not part of the fleet feed, so it is polled while the run is live. */
import { queryOptions } from '@tanstack/react-query';
import { type Answered, all, call } from '../../api/client.ts';
import { keys } from './keys.ts';

export const runMailQuery = (run_id: string, live: boolean) =>
  queryOptions({
    queryKey: keys.run_mail(run_id),
    queryFn: () => all('listRunMail', { params: { run_id } }),
    refetchInterval: live ? 5000 : false,
    staleTime: 0,
  });
export type MailRecord = Answered<'listMail'>[number];

/** The oldest messages come first, and there are no further pages. */
export const INBOX_MAX = 100;

/** The user's unacknowledged mail, oldest first. */
export const inboxQuery = (username: string | undefined) =>
  queryOptions({
    queryKey: keys.inbox,
    queryFn: () =>
      call('listMail', { params: { actor_id: `user:${username}` }, query: { limit: INBOX_MAX } }),
    enabled: username !== undefined,
    refetchInterval: 15_000,
    staleTime: 0,
  });
export const mailQuery = (message_id: number) =>
  queryOptions({
    queryKey: keys.mail(message_id),
    queryFn: () => call('getMail', { params: { message_id: String(message_id) } }),
  });
