/** What is said to an agent that speaks ACP: one turn each, one after the other. */
export const promptStates = ['queued', 'sent', 'ended', 'lost'] as const;
export type PromptState = (typeof promptStates)[number];

export interface Prompt {
  id: string;
  /** ACP content blocks. */
  content: ({ type: string } & Record<string, unknown>)[];
  /** `sent`: its turn is going on. `lost`: the agent ended in the middle of it, and what came of it is not known. */
  state: PromptState;
  stop_reason: string | null;
  /** A user's id. */
  created_by: string | null;
  created_at: string;
  sent_at: string | null;
  ended_at: string | null;
}
