/** The mailboxes of actors, and triggers, which send mail at scheduled times. */
import { ActorTransactions } from '../actors/transactions.ts';
import type { AgentsFeature } from '../agents/index.ts';
import type { Core, Feature } from '../feature.ts';
import type { RunsFeature } from '../runs/index.ts';
import { runOfNum } from '../runs/queries/runs.ts';
import { mailMethods, triggerMethods } from './actor.ts';
import { announcerOfMail } from './changed-mail.ts';
import { mailHandlers } from './http.ts';
import { mail_help } from './messages.ts';
import { countUnacknowledged, renameInMail } from './queries/mail.ts';
import { renameInTriggers } from './queries/triggers.ts';
import { Mailbox } from './service.ts';
import { Triggers } from './triggers.ts';
import { Waking } from './waking.ts';

export interface MailboxFeature extends Feature {
  mailbox: Mailbox;
  triggers: Triggers;
}

export function openMailbox(
  core: Core,
  { agents, runs }: { agents: AgentsFeature; runs: RunsFeature },
): MailboxFeature {
  const announcer = announcerOfMail(core);
  const mailbox = new Mailbox({ ...core, publisher: runs.publisher, announcer });
  const triggers = new Triggers(core, mailbox);
  const transactions = new ActorTransactions(core.store);
  const waking = new Waking(agents.core, mailbox);
  return {
    name: 'mailbox',
    ...{ mailbox, triggers },
    actor_methods: {
      ...mailMethods(core.store, transactions, mailbox),
      ...triggerMethods(core.store, transactions, triggers),
    },
    routes: mailHandlers(mailbox, triggers),
    facts: { mail: waking.facts(), triggers: triggers.facts() },
    timers: { ...waking.timers(), ...triggers.timers() },
    close: async () => announcer.close(),
    extensions: {
      notifyLeader: async (tx, { run_num, ...letter }) => {
        await mailbox.post(tx, { run: (await runOfNum(tx, run_num))!, ...letter, hops: 0 });
      },
      actorHelp: () => [mail_help],
      pendingMail: async (tx, { run_num, actor_id, prompt_id }) =>
        mailbox.pendingMail(tx, (await runOfNum(tx, run_num))!, actor_id, prompt_id),
      unacknowledgedMail: countUnacknowledged,
      onUserRenamed: async (...args) => {
        await renameInMail(...args);
        await renameInTriggers(...args);
      },
    },
  };
}
