/** The features that add to screens of others. To remove one, see `CONTRIBUTING.md#remove-a-feature`. */
import type { WebFeature } from './feature.ts';
import { mailbox } from './screens/mailbox/feature.ts';
import { passkeys } from './screens/passkeys/feature.ts';
import { tasks } from './screens/tasks/feature.ts';

const list = [mailbox, passkeys, tasks] as const;

export const features: readonly WebFeature[] = list;
/** The exact type of each, which the types of links and search parameters need. */
export type Features = typeof list;
