/** The queries of mail. Messages are not part of the fleet feed, so those of a run are polled while it is live. */
import { queryOptions } from '@tanstack/react-query';
import { type Answered, all, call, type ItemOf } from '../../api/client.ts';
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

/** The user's unacknowledged mail, oldest first. Read again when the fleet feed announces a change, and regularly: announcements are not repeated. */
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

export type TriggerRecord = ItemOf<'listRunTriggers'>;

const TRIGGERS_READ_MS = 30_000;
/** After the time of a trigger, until the service has fired it. */
const FIRED_MS = 1000;
const OVERDUE_READ_MS = 3000;

/** Triggers are not part of any stream, so they are read again when the next one is due, and regularly. */
const polled_triggers = {
  refetchInterval: ({ state: { data } }: { state: { data?: readonly TriggerRecord[] | undefined } }) => {
    const next = Math.min(...(data ?? []).map(({ next_at }) => Date.parse(next_at)));
    const wait_ms = next - Date.now();
    return wait_ms <= 0 ? OVERDUE_READ_MS : Math.min(TRIGGERS_READ_MS, wait_ms + FIRED_MS);
  },
  refetchOnWindowFocus: true,
  staleTime: 0,
} as const;

export const runTriggersQuery = (run_id: string) =>
  queryOptions({
    queryKey: keys.run_triggers(run_id),
    queryFn: () => all('listRunTriggers', { params: { run_id } }),
    ...polled_triggers,
  });
/** The user's triggers in all runs. */
export const ownTriggersQuery = (username: string | undefined) =>
  queryOptions({
    queryKey: keys.own_triggers,
    queryFn: () => all('listTriggers', { params: { actor_id: `user:${username}` } }),
    enabled: username !== undefined,
    ...polled_triggers,
  });
