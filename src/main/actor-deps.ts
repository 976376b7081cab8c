/** What the actor surface has of teams' services. */
import { Problem } from '../domain/problem.ts';
import type { ActorDeps } from '../services/actors/deps.ts';

/** Stand where no mail is carried. */
export function absentMail(): Pick<ActorDeps, 'mailbox' | 'triggers'> {
  const absent = (): never => {
    throw new Problem('unavailable', 'mail_unavailable', 'the mailbox is not available');
  };
  return {
    mailbox: { send: absent, inbox: absent, ack: absent, mailed: absent },
    triggers: { list: absent, set: absent, cancel: absent },
  };
}
