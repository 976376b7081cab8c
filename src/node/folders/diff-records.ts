/**
 * Parses git's machine formats (`-z`) of `diff --raw --numstat` and `ls-files`. Pure. A name that is not UTF-8 is shown
 * as git quotes it, with octal escapes; all other names are unchanged.
 */
import { isUtf8 } from 'node:buffer';
import type { ChangedFile } from '../../core/node.ts';

export interface DiffRecord {
  status: ChangedFile['status'];
  path: Buffer;
  from: Buffer | null;
  additions: number | null;
  deletions: number | null;
}

const statuses: Record<string, ChangedFile['status']> = {
  A: 'added',
  M: 'modified',
  D: 'deleted',
  R: 'renamed',
  C: 'copied',
  T: 'type_changed',
  U: 'conflicted',
};

/** Splits NUL-terminated fields. Omits a last field without NUL, because the output was truncated there. */
export function fields(bytes: Buffer): Buffer[] {
  const found: Buffer[] = [];
  let start = 0;
  for (let end = bytes.indexOf(0); end !== -1; end = bytes.indexOf(0, start)) {
    found.push(bytes.subarray(start, end));
    start = end + 1;
  }
  return found;
}

/** The records of `git diff --raw --numstat -z`, one per path. */
export function diffRecords(output: Buffer): DiffRecord[] {
  const records = new Map<string, DiffRecord>();
  const all = fields(output);
  for (let index = 0; index < all.length; ) {
    const head = all[index++]!.toString('latin1');
    if (head.startsWith(':')) {
      const letter = head.slice(head.lastIndexOf(' ') + 1, head.lastIndexOf(' ') + 2);
      const two = letter === 'R' || letter === 'C';
      const from = two ? all[index++] : null;
      const path = all[index++];
      if (!path || from === undefined) break;
      const key = path.toString('latin1');
      // Git lists a conflicted path twice; the conflict takes precedence.
      if (records.get(key)?.status === 'conflicted') continue;
      const status = statuses[letter] ?? 'modified';
      records.set(key, { status, path, from, additions: null, deletions: null });
      continue;
    }
    const counts = /^(\d+|-)\t(\d+|-)\t(.*)$/s.exec(head);
    if (!counts) break;
    let key = counts[3]!;
    if (key === '') {
      index++;
      key = all[index++]?.toString('latin1') ?? '';
    }
    const record = records.get(key);
    if (!record || counts[1] === '-') continue;
    record.additions = Number(counts[1]);
    record.deletions = Number(counts[2]);
  }
  return [...records.values()];
}

/** The name that clients see and request. */
export function shownName(name: Buffer): string {
  if (isUtf8(name) && name[0] !== 0x22) return name.toString();
  let shown = '"';
  for (const byte of name) {
    if (byte === 0x22 || byte === 0x5c) shown += `\\${String.fromCharCode(byte)}`;
    else if (byte < 0x20 || byte > 0x7e) shown += `\\${byte.toString(8).padStart(3, '0')}`;
    else shown += String.fromCharCode(byte);
  }
  return `${shown}"`;
}

/**
 * A pathspec for exactly this name. In a name that is not UTF-8, wildcards replace the bytes that no argument can
 * contain.
 */
export function pathspec(name: Buffer): string {
  if (isUtf8(name)) return `:(literal)${name.toString()}`;
  let pattern = ':(glob)';
  for (const byte of name) {
    const letter = String.fromCharCode(byte);
    if (byte < 0x20 || byte > 0x7e) pattern += '?';
    else pattern += /[\\*?[\]]/.test(letter) ? `\\${letter}` : letter;
  }
  return pattern;
}
