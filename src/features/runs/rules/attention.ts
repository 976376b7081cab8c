/** Why a person should look at a run. What is stored has a line for each reason, the newest last. */
import { limits } from '../limits.ts';

/** Adds a reason unless it is already there. Drops the oldest ones if there are too many. */
export function withReason(stored: string | null, reason: string): string {
  const line = reason.replaceAll(/\s+/g, ' ');
  const lines = linesOf(stored);
  if (!lines.includes(line)) lines.push(line);
  return lines.slice(-limits.attention_reasons_max).join('\n');
}

/** Removes the reasons that are over. Null if none is left. */
export function withoutReasons(stored: string | null, isOver: (reason: string) => boolean): string | null {
  return (
    linesOf(stored)
      .filter((line) => !isOver(line))
      .join('\n') || null
  );
}

/** Joins the reasons into one line; null if there are none. */
export function attentionText(stored: string | null): string | null {
  return stored === null ? null : linesOf(stored).join('; ');
}

function linesOf(stored: string | null): string[] {
  return stored?.split('\n') ?? [];
}
