/** What a tool call is, as far as the agent told: updates laid over what is known, with the lines that a diff adds and removes. */
import { diffLines } from 'diff';
import { bounds } from './bounds.ts';
import { charsOf, type Part, partOf } from './parts.ts';
import { type Fields, headOf, numberOf, type Raw, rawOf, recordsOf, stringOf, wordOf } from './reading.ts';

export interface Diff {
  readonly type: 'diff';
  readonly path: string;
  /** Null for a new file. */
  readonly old: string | null;
  readonly new: string;
  readonly added: number;
  readonly removed: number;
  /** Only the first part of the texts is here; the counts are of that part. */
  readonly cut: boolean;
}

export type CallContent =
  | { readonly type: 'content'; readonly part: Part }
  | Diff
  | { readonly type: 'terminal'; readonly terminal_id: string }
  | { readonly type: 'unknown'; readonly raw: Raw };

export interface Location {
  readonly path: string;
  readonly line: number | null;
}

export interface Call {
  readonly id: string;
  readonly title: string;
  /** ACP's `ToolKind`, or whatever else the agent said. */
  readonly tool_kind: string;
  readonly locations: readonly Location[];
  readonly content: readonly CallContent[];
  /** Contents that were left out, because there is too much of them. */
  readonly content_cut: number;
  readonly raw_input: Raw | null;
  readonly raw_output: Raw | null;
}

export function callOf(told: Fields, before?: Call): Call {
  const id = before?.id ?? wordOf(told.toolCallId) ?? '';
  return {
    id,
    title: wordOf(told.title) ?? before?.title ?? id,
    tool_kind: wordOf(told.kind) ?? before?.tool_kind ?? 'other',
    locations: Array.isArray(told.locations) ? locationsOf(told.locations) : (before?.locations ?? []),
    ...contentOf(told.content, before),
    raw_input: rawAfter(told.rawInput, before?.raw_input),
    raw_output: rawAfter(told.rawOutput, before?.raw_output),
  };
}

export function charsOfCall({ title, locations, content, raw_input, raw_output }: Call): number {
  const paths = locations.reduce((sum, { path }) => sum + path.length, 0);
  const contents = content.reduce((sum, one) => sum + charsOfContent(one), 0);
  return title.length + paths + contents + (raw_input?.chars ?? 0) + (raw_output?.chars ?? 0);
}

/** What its diffs add and remove. */
export function changesOf({ content }: Call): { added: number; removed: number } {
  const diffs = content.filter((one) => one.type === 'diff');
  return {
    added: diffs.reduce((sum, { added }) => sum + added, 0),
    removed: diffs.reduce((sum, { removed }) => sum + removed, 0),
  };
}

function rawAfter(told: unknown, before: Raw | null | undefined): Raw | null {
  return told === undefined || told === null ? (before ?? null) : rawOf(told);
}

function locationsOf(told: unknown): Location[] {
  return recordsOf(told).flatMap(({ path, line }) => {
    const word = wordOf(path);
    return word === null ? [] : [{ path: word, line: numberOf(line) }];
  });
}

function contentOf(told: unknown, before?: Call): Pick<Call, 'content' | 'content_cut'> {
  if (!Array.isArray(told)) {
    return { content: before?.content ?? [], content_cut: before?.content_cut ?? 0 };
  }
  const content: CallContent[] = [];
  let room: number = bounds.body_chars;
  for (const [at, one] of recordsOf(told).entries()) {
    const next = contentItem(one, before?.content[at]);
    room -= charsOfContent(next);
    if (room < 0) break;
    content.push(next);
  }
  return { content, content_cut: told.length - content.length };
}

/** `before` stands where this one does: agents say the whole list again with each update. */
function contentItem(told: Fields, before: CallContent | undefined): CallContent {
  if (told.type === 'content') return { type: 'content', part: shortened(partOf(told.content)) };
  if (told.type === 'diff' && typeof told.newText === 'string') {
    return diffOf(wordOf(told.path) ?? '', stringOf(told.oldText), told.newText, before);
  }
  const terminal_id = wordOf(told.terminalId);
  if (told.type === 'terminal' && terminal_id !== null) return { type: 'terminal', terminal_id };
  return { type: 'unknown', raw: rawOf(told) };
}

function shortened(part: Part): Part {
  return part.type === 'text' ? { ...part, text: headOf(part.text, bounds.text_chars) } : part;
}

function diffOf(path: string, from: string | null, to: string, before: CallContent | undefined): Diff {
  const old = from === null ? null : headOf(from, bounds.text_chars);
  const new_text = headOf(to, bounds.text_chars);
  const is_known =
    before?.type === 'diff' && before.path === path && before.old === old && before.new === new_text;
  if (is_known) return before;
  const cut = new_text.length < to.length || (old?.length ?? 0) < (from?.length ?? 0);
  return { type: 'diff', path, old, new: new_text, ...lineChanges(old ?? '', new_text), cut };
}

/** How lines end is no change that people look for. */
export function lineChanges(before: string, after: string): { added: number; removed: number } {
  const [from, to] = [lined(before), lined(after)];
  const changes = diffLines(from, to, { maxEditLength: bounds.diff_edits });
  // Too little in common to be compared: the one stands for the other.
  if (!changes) return { added: linesIn(to), removed: linesIn(from) };
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

function linesIn(text: string): number {
  return text.split('\n').length - 1;
}

function charsOfContent(content: CallContent): number {
  switch (content.type) {
    case 'content':
      return charsOf(content.part);
    case 'diff':
      return content.path.length + (content.old?.length ?? 0) + content.new.length;
    case 'terminal':
      return content.terminal_id.length;
    case 'unknown':
      return content.raw.chars;
  }
}
