/** The turn that a user sees, and its cancellation. */
import { Problem } from '../../core/problem.ts';
import { call } from './client.ts';

/**
 * Cancels only the turn of this prompt (null: only work without a prompt), so that a late click never cancels the next one. It
 * may have ended meanwhile.
 */
export async function cancelTurnOf(agent_id: string, prompt_id: string | null): Promise<void> {
  try {
    await call('cancelTurn', { params: { agent_id }, body: { prompt_id } });
  } catch (error) {
    if (!(error instanceof Problem && error.code === 'no_turn')) throw error;
  }
}

/** The prompt whose turn runs according to a list of prompts; null: none. */
export function currentPrompt(prompts: readonly { id: string; state: string }[]): string | null {
  return prompts.find(({ state }) => state === 'sent')?.id ?? null;
}
