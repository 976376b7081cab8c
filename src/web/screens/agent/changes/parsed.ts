/** A unified diff as hunks, or why it is not shown as such (pure). */
import parser, { type Change, type Hunk } from 'gitdiff-parser';
import { escapeHidden } from '../../../../core/visible.ts';
import type { Answered } from '../../../api/client.ts';

export type FileChange = Answered<'getChange'>;
export type ChangedFile = Answered<'getChanges'>['files'][number];

/** Longer tables make the page slow. */
const LINES_MAX = 3_000;
/** Enough to tell a line from others with the same text. */
const LINES_COMPARED = 8;
/** Longer lines are not code that people read. */
const LINE_CHARS_MAX = 5_000;

export type Parsed =
  | { readonly type: 'hunks'; readonly hunks: Hunk[] }
  | { readonly type: 'binary' }
  /** The text is unchanged. */
  | { readonly type: 'same' }
  | { readonly type: 'large' };

export function parsed({ diff, truncated, additions }: FileChange): Parsed {
  if (additions === null) return { type: 'binary' };
  if (truncated || isLarge(diff)) return { type: 'large' };
  let hunks: Hunk[] = [];
  try {
    hunks = parser.parse(diff).flatMap((file) => file.hunks);
  } catch {
    // Not a diff that this page can show.
    return { type: 'large' };
  }
  if (hunks.length === 0) return { type: 'same' };
  return { type: 'hunks', hunks: usesCrlf(diff) ? hunks.map(withoutCr) : hunks };
}

/** What the lines of a file's diff do not show: that it is a link, or may be run as a program. Null: nothing. */
export function describeMode(diff: string): string | null {
  // Lines of the file begin with a space or a sign.
  const before = /^old mode (\d+)$/m.exec(diff)?.[1];
  const after = /^new (?:file )?mode (\d+)$/m.exec(diff)?.[1];
  if (after === '120000') return 'This is a symbolic link.';
  if (after === '100755') return before ? 'The file is now executable.' : 'The file is executable.';
  return before === '100755' ? 'The file is no longer executable.' : null;
}

function isLarge(diff: string): boolean {
  let lines = 0;
  let begin = 0;
  for (let end = diff.indexOf('\n'); end !== -1; end = diff.indexOf('\n', begin)) {
    if (++lines > LINES_MAX || end - begin > LINE_CHARS_MAX) return true;
    begin = end + 1;
  }
  return diff.length - begin > LINE_CHARS_MAX;
}

/** Whether every line ends in CRLF, except a last line without an end. If only some do, the difference is shown. */
function usesCrlf(diff: string): boolean {
  const lines = diff.slice(diff.indexOf('\n@@'));
  return lines.includes('\r\n') && !/^[-+ ](?:[^\n]*[^\r\n])?\n(?!\\)/m.test(lines);
}

function withoutCr(hunk: Hunk): Hunk {
  const changes = hunk.changes.map((change) => ({ ...change, content: change.content.replace(/\r$/, '') }));
  return { ...hunk, changes };
}

/** For display: characters that are hidden or imitate others are shown as their code points. */
export function visible(hunks: readonly Hunk[]): Hunk[] {
  return hunks.map((hunk) => ({
    ...hunk,
    content: escapeHidden(hunk.content.trimEnd()),
    changes: hunk.changes.map((change) => ({ ...change, content: escapeHidden(change.content) })),
  }));
}

/** Pairs removed lines with the added lines that replace them, for the rows of a split diff. */
export function paired(hunks: readonly Hunk[]): Hunk[] {
  return hunks.map((hunk) => ({ ...hunk, changes: pairs(hunk.changes) }));
}

function pairs(changes: readonly Change[]): Change[] {
  const all: Change[] = [];
  for (let at = 0; at < changes.length; ) {
    const deleted = runFrom(changes, at, 'delete');
    const added = runFrom(changes, at + deleted.length, 'insert');
    for (let n = 0; n < Math.max(deleted.length, added.length); n++) {
      all.push(...deleted.slice(n, n + 1), ...added.slice(n, n + 1));
    }
    at += deleted.length + added.length;
    const unchanged = runFrom(changes, at, 'normal');
    all.push(...unchanged);
    at += unchanged.length;
  }
  return all;
}

function runFrom(changes: readonly Change[], from: number, type: Change['type']): Change[] {
  let to = from;
  while (changes[to]?.type === type) to++;
  return changes.slice(from, to);
}

export type Side = 'old' | 'new';

export interface Place {
  readonly side: Side;
  readonly line: number;
}

/** The place of a diff line: in the new file, or in the old file for a removed line. */
export function getPlace(change: Change): Place {
  if (change.type === 'normal') return { side: 'new', line: change.newLineNumber };
  return { side: change.type === 'delete' ? 'old' : 'new', line: change.lineNumber };
}

/** A place, and the lines up to it, so that it can be found again after the diff has changed. */
export interface Anchor extends Place {
  /** As `linesUpTo`. */
  readonly lines: readonly { readonly line: number; readonly text: string }[];
}

export function anchorAt(hunks: readonly Hunk[], { side, line }: Place): Anchor {
  return { side, line, lines: linesUpTo(hunks, { side, line }) };
}

/**
 * Where the line of the anchor is now: of the lines with its text, the one with most of the same lines above it, then the
 * nearest. Null if there is none.
 */
export function findAnchor(hunks: readonly Hunk[], { side, line, lines }: Anchor): Place | null {
  let best: { place: Place; same: number; distance: number } | null = null;
  for (const hunk of hunks) {
    const texts = hunk.changes.flatMap((change) =>
      numberOn(change, side) === null ? [] : [{ change, text: change.content }],
    );
    for (const [at, { change, text }] of texts.entries()) {
      const place = getPlace(change);
      const same = countSame(texts.slice(0, at + 1), lines);
      // A bracket alone says little about where it was.
      const is_clear = same > 1 || place.line === line || /\w/.test(text);
      if (place.side !== side || same === 0 || !is_clear) continue;
      const distance = Math.abs(place.line - line);
      if (best === null || same > best.same || (same === best.same && distance < best.distance))
        best = { place, same, distance };
    }
  }
  return best?.place ?? null;
}

/** The number of equal lines at the ends of both lists, up to a few. */
function countSame(a: readonly { text: string }[], b: readonly { text: string }[]): number {
  let count = 0;
  while (count < LINES_COMPARED && a.length > count && b.length > count) {
    if (a.at(-1 - count)!.text !== b.at(-1 - count)!.text) break;
    count++;
  }
  return count;
}

/** The lines of the place's side in its hunk, from the first one to the place; empty if the place is not in the diff. */
export function linesUpTo(hunks: readonly Hunk[], place: Place): { line: number; text: string }[] {
  const hunk = hunks.find((each) => findChange([each], place) !== null);
  const lines = (hunk?.changes ?? []).flatMap((change) => {
    const line = numberOn(change, place.side);
    return line === null || line > place.line ? [] : [{ line, text: change.content }];
  });
  return lines.sort((a, b) => a.line - b.line);
}

function numberOn(change: Change, side: Side): number | null {
  if (change.type === 'normal') return side === 'old' ? change.oldLineNumber : change.newLineNumber;
  return (change.type === 'delete') === (side === 'old') ? change.lineNumber : null;
}

export function findChange(hunks: readonly Hunk[], { side, line }: Place): Change | null {
  for (const { changes } of hunks) {
    const found = changes.find((change) => {
      const place = getPlace(change);
      return place.side === side && place.line === line;
    });
    if (found) return found;
  }
  return null;
}
