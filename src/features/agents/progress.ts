/** What a session reports about the work of its agent, as the agent's record shows it (pure). */
import { stripVTControlCharacters } from 'node:util';
import type { AcpState } from '../../acp/state.ts';
import { limits } from './limits.ts';
import type { Progress } from './rules.ts';

/**
 * Of an ACP session. Between turns the agent does nothing, so there is no `now`. Redacts before it shortens, because a part
 * of a secret would not be found.
 */
export function progressOf(
  { turn, work, now, plan, usage }: AcpState,
  redact: (text: string) => string,
): Progress {
  const done = plan.filter(({ status }) => status === 'completed').length;
  return {
    now: now === null || (turn === null && !work.busy) ? null : firstLine(redact(now)),
    plan: plan.length === 0 ? null : { done, total: plan.length },
    usage: usage && { used: usage.used, size: usage.size, cost: usage.cost ?? null },
  };
}

/** The first line that is not empty. */
function firstLine(text: string): string | null {
  return toLines(text)[0]?.slice(0, limits.now_chars_max) ?? null;
}

/** After the end of the session. `failure`: the text whose last line explains it; null if it did not fail. */
export function progressAtEnd(stored: string | null, failure: string | null): string | null {
  const now = failure === null ? null : lastLine(failure);
  if (stored === null) return now === null ? null : JSON.stringify({ now, plan: null, usage: null });
  return JSON.stringify({ ...(JSON.parse(stored) as Progress), now });
}

/** The last line that is not empty. */
function lastLine(text: string): string | null {
  return toLines(text).at(-1)?.slice(0, limits.now_chars_max) ?? null;
}

/** Those that are not empty, as plain text. */
function toLines(text: string): string[] {
  const lines = stripVTControlCharacters(text).split(/[\r\n]/);
  return lines.map((line) => line.trim()).filter((line) => line !== '');
}
