/** Comments on lines of a diff, until they are sent to the agent as one prompt (pure). */
import type { Anchor, Place, Side } from './parsed.ts';

export interface Comment extends Place {
  readonly path: string;
  /** The first line, if the comment is on several; the place is the last one. */
  readonly first?: number;
  /** The text of the lines at the time of the comment. */
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

/** Replaces the comment that ends on a line; an empty text removes it. */
export function withComment(list: readonly Comment[], comment: Comment): Comment[] {
  const others = list.filter((item) => !isOnLine(item, comment.path, comment));
  const text = comment.text.trim();
  return text === '' ? others : [...others, { ...comment, text }].sort(compareComments);
}

/**
 * Adds the comment of a box that was opened at a line, in place of the one that it has edited. It quotes the lines that the user
 * has seen. `now`: where the line is by now; null if it is no longer in the diff. `first`: as it was when the box was opened.
 * A comment that the line has moved onto stays, above the new one.
 */
export function withAnchored(
  list: readonly Comment[],
  put: { path: string; open: Anchor; now: Place | null; text: string; first: number | undefined },
): Comment[] {
  const { path, open, now, text, first } = put;
  const { side, line, lines } = open;
  const quoted = lines.filter((each) => each.line >= (first ?? line)).map((each) => each.text);
  // A draft whose line is not in the diff has no lines, but the comment that it changes may quote them.
  const edited = lines.length === 0 ? list.find((item) => isOnLine(item, path, open)) : undefined;
  const by = now === null ? 0 : now.line - line;
  const comment: Comment = {
    ...{ path, side, line: line + by, code: edited?.code ?? quoted.join('\n'), text },
    ...(first !== undefined && { first: first + by }),
  };
  const others = withComment(list, { ...comment, line, text: '' });
  const there = others.find((item) => isOnLine(item, path, comment));
  return withComment(others, there ? joined(there, comment) : comment);
}

/** Two comments that end on the same line, as one on the longer range of lines. */
function joined(one: Comment, other: Comment): Comment {
  const longer = (one.first ?? one.line) < (other.first ?? other.line) ? one : other;
  return { ...longer, text: `${one.text}\n\n${other.text}` };
}

/** Removes comments, unless they were changed since. */
export function withoutComments(list: readonly Comment[], removed: readonly Comment[]): Comment[] {
  return list.filter(
    (comment) => !removed.some((one) => isOnLine(one, comment.path, comment) && one.text === comment.text),
  );
}

function compareComments(a: Comment, b: Comment): number {
  if (a.path !== b.path) return a.path < b.path ? -1 : 1;
  return a.line - b.line || (a.side === b.side ? 0 : a.side === 'old' ? -1 : 1);
}

/** Longer ranges are quoted only in part. */
const QUOTED_LINES_MAX = 40;

/** The lines of a comment in words, such as `line 7` or `lines 3 to 7`. */
export function describeLines({ first, line }: Pick<Comment, 'first' | 'line'>): string {
  return first === undefined ? `line ${line}` : `lines ${first} to ${line}`;
}

/** The prompt for the agent. */
export function toPrompt(list: readonly Comment[]): string {
  const what = list.length === 1 ? 'A comment' : `${list.length} comments`;
  const each = list.map((comment) => `${getPosition(comment)}\n${quote(comment.code)}\n${comment.text}`);
  return [`${what} on your changes:`, ...each].join('\n\n');
}

function getPosition({ path, first, line, side }: Comment): string {
  if (first === undefined)
    return side === 'old' ? `${path}:${line} (a line that you removed)` : `${path}:${line}`;
  const range = `${path}:${first}-${line}`;
  return side === 'old' ? `${range} (lines of the file before your changes)` : range;
}

/** Ends in an empty line. Without lines, there is nothing to quote. */
function quote(code: string): string {
  if (code === '') return '';
  const lines = code.split('\n');
  const quoted = lines.slice(0, QUOTED_LINES_MAX).map((text) => `> ${text}`);
  return [...quoted, ...(lines.length > QUOTED_LINES_MAX ? ['> …'] : []), ''].join('\n');
}

export interface CommentDraft extends Place {
  readonly path: string;
}

/** The places of drafts, from their keys: `prefix`, then the path, side and line. Other keys are left out. */
export function parseDraftKeys(keys: readonly string[], prefix: string): CommentDraft[] {
  return keys.flatMap((key) => {
    const [, path, side, line] = /^(.*)\.(old|new)(\d+)$/s.exec(key.slice(prefix.length)) ?? [];
    return path === undefined ? [] : [{ path, side: side as Side, line: Number(line) }];
  });
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
  const { path, side, first, line, code, text } = (value ?? {}) as Partial<Record<keyof Comment, unknown>>;
  return (
    [path, code, text].every((field) => typeof field === 'string') &&
    (side === 'old' || side === 'new') &&
    Number.isInteger(line) &&
    (first === undefined || Number.isInteger(first))
  );
}
