/** Tool calls in a transcript. Merges each report into the known state, and counts the lines that diffs add and remove. */
// Importing the whole package would add all its algorithms to the web UI.
import { diffLines } from 'diff/lib/diff/line.js';
import { truncateText } from '../json.ts';
import { type Content, type Location, readContent, type ToolCall } from '../tool-calls.ts';
import { type Raw, shortOrNull, shortText, toRaw } from './bounded.ts';
import { bounds } from './bounds.ts';
import { countChars, type Part, toPart } from './parts.ts';

export interface Diff {
  readonly type: 'diff';
  readonly path: string;
  /** Null for a new file. */
  readonly old: string | null;
  readonly new: string;
  readonly added: number;
  readonly removed: number;
  /** The texts are incomplete, and the counts cover only the part that is included. */
  readonly truncated: boolean;
}

/** The output of a command of the agent. */
export interface Terminal {
  readonly type: 'terminal';
  readonly terminal_id: string;
  readonly command: string | null;
  /** The end of the output. */
  readonly text: string;
  /** Number of omitted characters before that. */
  readonly omitted_chars: number;
  /** How the command ended; null while it is running. */
  readonly exit: string | null;
}

export type CallContent =
  | { readonly type: 'content'; readonly part: Part }
  | Diff
  | Terminal
  | { readonly type: 'unknown'; readonly raw: Raw };

export interface Call {
  readonly id: string;
  readonly title: string;
  /** The number of characters of the title that were omitted, because it is too long. */
  readonly title_cut: number;
  /** ACP's `ToolKind`, or any other value that the agent sent. */
  readonly tool_kind: string;
  readonly locations: readonly Location[];
  /** The number of omitted locations, because there were too many. */
  readonly locations_cut: number;
  readonly content: readonly CallContent[];
  /** The number of omitted contents, because there were too many. */
  readonly content_cut: number;
  readonly raw_input: Raw | null;
  readonly raw_output: Raw | null;
}

/** Ids of calls and terminals are unique only within a session. `scope`: that session; '' for the agent's own. */
export function scopedKey(id: string, scope: string): string {
  return scope === '' ? id : `${scope} ${id}`;
}

/** `before`: the same call, as described by earlier reports. */
export function mergeCall(report: ToolCall, before?: Call): Call {
  const { tool_kind } = report;
  const id = before?.id ?? shortOrNull(report.id) ?? '';
  return {
    id,
    ...readTitle(report.title, id, before),
    tool_kind: shortOrNull(tool_kind) ?? before?.tool_kind ?? 'other',
    ...readLocations(report.locations, before),
    ...readCallContent(report.content, before),
    raw_input: rawAfter(report.raw_input, before?.raw_input),
    raw_output: rawAfter(report.raw_output, before?.raw_output),
  };
}

/** Appends content. */
export function withContent(call: Call, content: unknown): Call {
  const more = contentItems(content, []);
  const chars = [...call.content, ...more].reduce((sum, one) => sum + countContentChars(one), 0);
  const fits = chars <= bounds.body_chars && call.content.length < bounds.parts && call.content_cut === 0;
  if (!fits) return { ...call, content_cut: call.content_cut + more.length };
  return { ...call, content: [...call.content, ...more] };
}

export function countCallChars({ title, locations, content, raw_input, raw_output }: Call): number {
  const paths = locations.reduce((sum, { path }) => sum + path.length, 0);
  const contents = content.reduce((sum, one) => sum + countContentChars(one), 0);
  return title.length + paths + contents + (raw_input?.chars ?? 0) + (raw_output?.chars ?? 0);
}

/** The number of lines that its diffs add and remove. */
export function countChanges({ content }: Call): { added: number; removed: number } {
  const diffs = content.filter((item) => item.type === 'diff');
  return {
    added: diffs.reduce((sum, { added }) => sum + added, 0),
    removed: diffs.reduce((sum, { removed }) => sum + removed, 0),
  };
}

function rawAfter(value: unknown, before: Raw | null | undefined): Raw | null {
  return value === undefined || value === null ? (before ?? null) : toRaw(value);
}

function readTitle(
  reported: string | null,
  id: string,
  before: Call | undefined,
): Pick<Call, 'title' | 'title_cut'> {
  if (reported === null) return { title: before?.title ?? id, title_cut: before?.title_cut ?? 0 };
  const title = truncateText(reported, bounds.call_title_chars);
  return { title, title_cut: reported.length - title.length };
}

function readLocations(
  reported: readonly Location[] | null,
  before: Call | undefined,
): Pick<Call, 'locations' | 'locations_cut'> {
  if (reported === null) {
    return { locations: before?.locations ?? [], locations_cut: before?.locations_cut ?? 0 };
  }
  const locations = reported.slice(0, bounds.parts).map(shortLocation);
  return { locations, locations_cut: reported.length - locations.length };
}

function shortLocation({ path, line }: Location): Location {
  return { path: shortText(path), line };
}

function readCallContent(reported: unknown, before?: Call): Pick<Call, 'content' | 'content_cut'> {
  if (!Array.isArray(reported)) {
    return { content: before?.content ?? [], content_cut: before?.content_cut ?? 0 };
  }
  const all = contentItems(reported, before?.content ?? []);
  const content: CallContent[] = [];
  let chars_left: number = bounds.body_chars;
  for (const next of all) {
    chars_left -= countContentChars(next);
    if (chars_left < 0) break;
    content.push(next);
  }
  return { content, content_cut: Math.max(reported.length, all.length) - content.length };
}

function contentItems(reported: unknown, before: readonly CallContent[]): CallContent[] {
  return readContent(reported)
    .slice(0, bounds.parts)
    .map((item, at) => contentItem(item, before[at]));
}

/** `before`: the content in the same position, because agents send the whole list again with each update. */
function contentItem(one: Content, before: CallContent | undefined): CallContent {
  if (one.type === 'content') return { type: 'content', part: truncatePart(toPart(one.block)) };
  if (one.type === 'terminal') return newTerminal(shortText(one.terminal_id));
  if (one.type === 'diff' && one.new_text !== null) {
    return createDiff(shortText(one.path), one.old_text, one.new_text, before);
  }
  return { type: 'unknown', raw: toRaw(one.raw) };
}

export function newTerminal(terminal_id: string): Terminal {
  return { type: 'terminal', terminal_id, command: null, text: '', omitted_chars: 0, exit: null };
}

function truncatePart(part: Part): Part {
  if (part.type !== 'text' || part.text.length <= bounds.text_chars) return part;
  const text = truncateText(part.text, bounds.text_chars);
  return { ...part, text: `${text}\n⟨${part.text.length - text.length} more characters not shown⟩` };
}

function createDiff(path: string, from: string | null, to: string, before: CallContent | undefined): Diff {
  const old = from === null ? null : truncateText(from, bounds.text_chars);
  const new_text = truncateText(to, bounds.text_chars);
  const is_known =
    before?.type === 'diff' && before.path === path && before.old === old && before.new === new_text;
  if (is_known) return before;
  const truncated = new_text.length < to.length || (old?.length ?? 0) < (from?.length ?? 0);
  return { type: 'diff', path, old, new: new_text, ...lineChanges(old ?? '', new_text), truncated };
}

/** The number of changed lines. Changed line endings do not count. */
export function lineChanges(before: string, after: string): { added: number; removed: number } {
  const [from, to] = [lined(before), lined(after)];
  const changes = diffLines(from, to, { maxEditLength: bounds.diff_edits });
  // The texts have too little in common, so all lines count as changed.
  if (!changes) return { added: countLines(to), removed: countLines(from) };
  let [added, removed] = [0, 0];
  for (const change of changes) {
    if (change.added) added += change.count;
    if (change.removed) removed += change.count;
  }
  return { added, removed };
}

function lined(text: string): string {
  return text === '' ? '' : `${text.replaceAll('\r\n', '\n').replace(/\n$/, '')}\n`;
}

function countLines(text: string): number {
  return text.split('\n').length - 1;
}

function countContentChars(content: CallContent): number {
  switch (content.type) {
    case 'content':
      return countChars(content.part);
    case 'diff':
      return content.path.length + (content.old?.length ?? 0) + content.new.length;
    case 'terminal':
      return content.terminal_id.length + content.text.length;
    case 'unknown':
      return content.raw.chars;
  }
}
