/** What the mailbox adds to the web UI: the user's mail, and the mail of runs and of each member. */
import { useQuery } from '@tanstack/react-query';
import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { Mail } from 'lucide-react';
import { session, useSession } from '../../api/session.ts';
import { type MemberTabProps, part, type WebFeature } from '../../feature.ts';
import { app } from '../../frame-routes.ts';
import { keys } from './keys.ts';
import { inboxQuery } from './queries.ts';

const screen = createRoute({
  getParentRoute: () => app,
  path: '/mail',
  component: lazyRouteComponent(() => import('./mail.tsx'), 'Mail'),
});

export const mailbox = {
  routes: [screen] as const,
  places: [{ to: '/mail', label: 'Mail', icon: Mail, group: 'Work', jump: 'm', useCount: useUnacknowledged }],
  run_panel: part(async () => (await import('./run-panel.tsx')).RunPanel),
  member_tab: {
    name: 'mailbox',
    label: 'Mailbox',
    count: ({ pending_messages }) => pending_messages,
    part: part<MemberTabProps>(async () => (await import('./run-mail.tsx')).RunMailList),
  },
  announced: {
    mail: (items) => {
      const own = `user:${session.get()?.user.username}`;
      return items.some(({ to_actor_id }) => to_actor_id === own) ? [keys.inbox] : [];
    },
  },
} satisfies WebFeature;

function useUnacknowledged(): number {
  const { data } = useQuery(inboxQuery(useSession()?.user.username));
  return data?.length ?? 0;
}
