/** How a view of an agent opens the dialog that deletes the agent. The dialog outlives the agent's record. */
import { createContext } from 'react';

/** `discard`: to discard its worktree, with everything in it. */
export type Deletion = 'delete' | 'discard';

export const AskToDelete = createContext<(how: Deletion) => void>(() => {});
