/** Parameters that many actor methods have. */
import { bounded } from '../../../api/fields.ts';
import { limits as sharedLimits } from '../../../base/limits.ts';

/** An actor's id, or a short name for it, such as `leader`. */
export const actorName = bounded(sharedLimits.actor_id_chars_max).min(1, { error: 'must not be empty' });
/** A name or a key. */
export const nonEmptyName = bounded(sharedLimits.name_chars_max).min(1, { error: 'must not be empty' });

export const asActor = {
  /** The actor to act as; absent: the caller's own. */
  actor_id: actorName.optional(),
};

export const inRunParams = {
  ...asActor,
  /** Absent: the run of the caller's session, else the only open one. */
  run_id: nonEmptyName.optional(),
};
