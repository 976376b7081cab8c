/**
 * A prompt for an agent that speaks ACP. Each prompt is one turn.
 *
 *     queued ──▶ sent ──▶ ended     the agent ended the turn, or its attempt failed
 *       │          └────▶ lost      the session ended during the turn
 *       └──▶ removed                by a person, or with its attempt
 */
export const promptStates = ['queued', 'sent', 'ended', 'lost'] as const;
export type PromptState = (typeof promptStates)[number];

export interface Prompt {
  id: string;
  /** ACP content blocks. */
  content: ({ type: string } & Record<string, unknown>)[];
  /** `sent`: its turn is in progress. `lost`: the agent ended during the turn, so the outcome is not known. */
  state: PromptState;
  stop_reason: string | null;
  /** A user's id. */
  created_by: string | null;
  created_at: string;
  sent_at: string | null;
  ended_at: string | null;
}
