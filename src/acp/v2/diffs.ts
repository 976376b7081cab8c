/**
 * Diffs of ACP v2 in the format of v1 (pure). v2 names the files that change and may give a patch; v1 has the old and
 * the new text of one file. The converted texts contain only the lines in the patch.
 */
import { asRecords, type Fields, isRecord } from '../json.ts';
import { type PatchedFile, readPatch } from './patch.ts';

/** Shown between two parts of a file. */
const GAP = '⋯';
const NOWHERE = '/dev/null';
/** Files beyond this number are not shown separately. */
const FILES_MAX = 1_000;

/** Converts the content of a tool call. Anything except a v2 diff stays unchanged. */
export function toV1Content(content: unknown): unknown {
  if (!Array.isArray(content)) return content;
  return content.flatMap((item: unknown) => (isChanges(item) ? parseDiffs(item) : [item]));
}

function isChanges(one: unknown): one is Fields {
  return (
    isRecord(one) && one.type === 'diff' && Array.isArray(one.changes) && one.changes.length <= FILES_MAX
  );
}

/** Returns one diff per file: first those in the patch, then the others. An unreadable patch is shown as text after them. */
function parseDiffs({ changes, patch }: Fields): Fields[] {
  const text = isRecord(patch) && patch.format === 'git_patch' ? readText(patch) : '';
  const files = parseFiles(text);
  const rest = asRecords(changes);
  const patched = (files ?? []).flatMap((file) => {
    if (file.hunks.length === 0) return [];
    const name = fileName(file);
    const at = rest.findIndex((change) => matchesPath(name, readText(change, 'path')));
    const [change] = at < 0 ? [] : rest.splice(at, 1);
    const oldText = file.old_name === NOWHERE ? null : sideLines(file, '-');
    return {
      type: 'diff',
      path: readText(change ?? { path: name }, 'path'),
      oldText,
      newText: sideLines(file, '+'),
    };
  });
  const unread = files === null ? [{ type: 'content', content: { type: 'text', text } }] : [];
  return [...patched, ...rest.map(unpatched), ...unread];
}

function readText(record: Fields, key = 'text'): string {
  const text = record[key];
  return typeof text === 'string' ? text : '';
}

/** Null if the text is not a patch. */
function parseFiles(text: string): PatchedFile[] | null {
  if (text.trim() === '') return [];
  const files = readPatch(text);
  return files && files.length <= FILES_MAX ? files : null;
}

/** Patches use relative paths, changes absolute ones. */
function matchesPath(name: string, path: string): boolean {
  return name !== '' && (path === name || path.endsWith(`/${name}`));
}

function fileName({ old_name, new_name }: PatchedFile): string {
  return new_name === NOWHERE ? old_name : new_name;
}

/** The lines on one side of a hunk. */
function sideLines({ hunks }: PatchedFile, side: '-' | '+'): string {
  const places = hunks.map((lines) =>
    lines.flatMap((line) => (line.startsWith(' ') || line.startsWith(side) ? [`${line.slice(1)}\n`] : [])),
  );
  return places.map((lines) => lines.join('')).join(`${GAP}\n`);
}

/** Describes the change of a file whose lines are not included. */
function unpatched(change: Fields): Fields {
  const [from, to, what] = [
    readText(change, 'oldPath'),
    readText(change, 'path'),
    readText(change, 'operation'),
  ];
  const named = from === '' ? to : `${from} → ${to}`;
  const path = ['add', 'modify', 'move'].includes(what) ? named : `${named} (${what})`;
  return { type: 'diff', path, oldText: what === 'add' ? null : '', newText: '' };
}
