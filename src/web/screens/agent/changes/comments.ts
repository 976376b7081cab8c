/** Comments on lines of a diff, until they are sent to the agent as one prompt (pure). */
import type { Place } from './parsed.ts';

export interface Comment extends Place {
  readonly path: string;
  /** The text of the line at the time of the comment. */
  readonly code: string;
  readonly text: string;
}

export interface Comments {
  readonly list: readonly Comment[];
  /** The idempotency key for sending them; it changes with the comments. */
  readonly key: string;
}

export function isOnLine(comment: Comment, path: string, { side, line }: Place): boolean {
  return comment.path === path && comment.side === side && comment.line === line;
}

/** Replaces the comment on a line; an empty text removes it. */
export function withComment(list: readonly Comment[], comment: Comment): Comment[] {
  const others = list.filter((item) => !isOnLine(item, comment.path, comment));
  const text = comment.text.trim();
  return text === '' ? others : [...others, { ...comment, text }].sort(compareComments);
}

function compareComments(a: Comment, b: Comment): number {
  if (a.path !== b.path) return a.path < b.path ? -1 : 1;
  return a.line - b.line || (a.side === b.side ? 0 : a.side === 'old' ? -1 : 1);
}

/** The prompt for the agent. */
export function toPrompt(list: readonly Comment[]): string {
  const what = list.length === 1 ? 'A comment' : `${list.length} comments`;
  const each = list.map(({ path, line, side, code, text }) => {
    const where = side === 'old' ? `${path}:${line} (a line that you removed)` : `${path}:${line}`;
    return `${where}\n> ${code}\n\n${text}`;
  });
  return [`${what} on your changes:`, ...each].join('\n\n');
}

/** Parses stored comments; null if they are malformed. */
export function parseComments(text: string | null): Comments | null {
  if (text === null) return null;
  try {
    const { list, key } = JSON.parse(text) as Comments;
    if (typeof key !== 'string' || !Array.isArray(list)) return null;
    return { list: (list as unknown[]).filter(isComment), key };
  } catch {
    return null;
  }
}

function isComment(value: unknown): value is Comment {
  const { path, side, line, code, text } = (value ?? {}) as Partial<Record<keyof Comment, unknown>>;
  return (
    [path, code, text].every((field) => typeof field === 'string') &&
    (side === 'old' || side === 'new') &&
    Number.isInteger(line)
  );
}
