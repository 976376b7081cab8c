/** What the mailbox adds to the web UI: the mail of runs, and of each member. */
import { type MemberTabProps, part, type WebFeature } from '../../feature.ts';

export const mailbox: WebFeature = {
  run_panel: part(async () => (await import('./run-mail.tsx')).RunMail),
  member_tab: {
    name: 'mailbox',
    label: 'Mailbox',
    count: ({ pending_messages }) => pending_messages,
    part: part<MemberTabProps>(async () => (await import('./run-mail.tsx')).RunMailList),
  },
};
