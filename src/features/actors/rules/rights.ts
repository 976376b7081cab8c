/**
 * What a member of a team may do with actor methods, by role. People have the same rights as over HTTP.
 * `features/reviews/rules.ts` says who may answer a review.
 */
import { problems } from '../../../core/problem.ts';

export const actorRoles = ['leader', 'worker', 'human'] as const;
export type ActorRole = (typeof actorRoles)[number];

const rights = {
  'team.see': ['leader', 'worker', 'human'],
  'mail.use': ['leader', 'worker', 'human'],
  'triggers.use': ['leader', 'worker', 'human'],
  'steps.see': ['leader', 'worker', 'human'],
  /** Also steps of other members. */
  'steps.end': ['leader', 'human'],
  'own_step.end': ['leader', 'worker', 'human'],
  'steps.add': ['leader', 'human'],
  'run.end': ['leader', 'human'],
} as const satisfies Record<string, readonly ActorRole[]>;

export type ActorAction = keyof typeof rights;

/** Throws `not allowed`. */
export function authorizeAction(role: ActorRole, action: ActorAction): void {
  const allowed: readonly ActorRole[] = rights[action];
  if (!allowed.includes(role)) throw problems.notAllowed();
}
