/** The text of what waits, for lists and links (pure). */
import { truncateText } from '../../acp/json.ts';
import { escapeHidden } from '../../core/visible.ts';
import type { WaitingItem } from './queue.ts';

const LINE_CHARS = 200;

/** What it asks, on one line, which shows where lines end and the text is cut. Hidden characters are visible. */
export function waitingText(item: WaitingItem): string {
  const text = describe(item);
  const line = escapeHidden(text.slice(0, 10 * LINE_CHARS).trimEnd()).replace(/\s*\n\s*/g, ' ⏎ ');
  const is_cut = line.length > LINE_CHARS || text.length > 10 * LINE_CHARS;
  return is_cut ? `${truncateText(line, LINE_CHARS)}…` : line;
}

function describe(item: WaitingItem): string {
  switch (item.kind) {
    case 'permission': {
      const { title, kind } = item.review.tool_call;
      return typeof title === 'string' ? title : typeof kind === 'string' ? kind : 'Untitled request';
    }
    case 'elicitation': {
      const { message, mode } = item.elicitation;
      return message || (mode === 'form' ? 'Fill in a form' : 'Open a link');
    }
    case 'question':
      return item.step.question;
    case 'run':
      return item.run.reason || 'Resume or end the run';
    case 'sign_in':
      return 'Sign in to continue';
  }
}
