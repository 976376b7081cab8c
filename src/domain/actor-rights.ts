/**
 * What an actor of a team may do on the actor surface, by its role. A human may do there what they may do over HTTP; whose
 * review may be answered by whom stands in `review.ts`.
 */
import { problems } from './problem.ts';

export const actorRoles = ['leader', 'worker', 'human'] as const;
export type ActorRole = (typeof actorRoles)[number];

const rights = {
  'team.see': ['leader', 'worker', 'human'],
  'mail.use': ['leader', 'worker', 'human'],
  'triggers.use': ['leader', 'worker', 'human'],
  'steps.see': ['leader', 'worker', 'human'],
  /** Those of other members too. */
  'steps.end': ['leader', 'human'],
  'own_step.end': ['leader', 'worker', 'human'],
  'steps.add': ['leader', 'human'],
  'run.end': ['leader', 'human'],
} as const satisfies Record<string, readonly ActorRole[]>;

export type ActorAction = keyof typeof rights;

/** Throws `not allowed`. */
export function mustHaveRight(role: ActorRole, action: ActorAction): void {
  const allowed: readonly ActorRole[] = rights[action];
  if (!allowed.includes(role)) throw problems.notAllowed();
}
