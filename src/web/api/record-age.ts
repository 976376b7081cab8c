/** Which of two states of a record is newer. */
import type { Row } from '../feature.ts';

type Age = 'older' | 'same' | 'newer';

/** Runs and tasks count their changes; agents have the time of the last one. Undefined for records with neither, such as steps. */
export function compareAges(record: object, known: object): Age | undefined {
  return compareField('version', record, known) ?? compareField('updated_at', record, known);
}

function compareField(name: string, record: object, known: object): Age | undefined {
  const [a, b] = [(record as Row)[name], (known as Row)[name]];
  if (typeof a !== typeof b || (typeof a !== 'number' && typeof a !== 'string')) return undefined;
  if (a === b) return 'same';
  return a < (b as typeof a) ? 'older' : 'newer';
}
