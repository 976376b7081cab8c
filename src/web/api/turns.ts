/** The turn that a user sees, and its cancellation. */
import { Problem } from '../../core/problem.ts';
import { call } from './client.ts';

/**
 * Cancels only the turn of this prompt (null: only work without a prompt), so that a late click never cancels the next one.
 * Returns false if it has ended meanwhile.
 */
export async function cancelTurnOf(agent_id: string, prompt_id: string | null): Promise<boolean> {
  try {
    await call('cancelTurn', { params: { agent_id }, body: { prompt_id } });
    return true;
  } catch (error) {
    if (error instanceof Problem && error.code === 'no_turn') return false;
    throw error;
  }
}

/** The prompt whose turn runs now; null: none. */
export async function readCurrentPrompt(agent_id: string): Promise<string | null> {
  return currentPrompt(await call('listPrompts', { params: { agent_id } }));
}

/** The prompt whose turn runs according to a list of prompts; null: none. */
export function currentPrompt(prompts: readonly { id: string; state: string }[]): string | null {
  return prompts.find(({ state }) => state === 'sent')?.id ?? null;
}

/** Whether a prompt is queued behind the turn of another one. */
export function isBehindTurn(prompts: readonly { id: string; state: string }[], prompt_id: string): boolean {
  const is_queued = prompts.some(({ id, state }) => id === prompt_id && state === 'queued');
  return is_queued && currentPrompt(prompts) !== null;
}
