/** Lines of output that report an error, as compilers, test runners and shells write them. */
import { toPattern } from '../../../transcript/find.ts';
import type { FindQuery } from './finder.ts';

/** A query for the search in output. A plural, as in `0 errors`, is a count, not a report. */
export const errorQuery: FindQuery = {
  text: String.raw`(?:error|exception)(?![\w-])|\b(?:fatal|panicked|traceback|segmentation fault)\b|\bERR!|: not found$`,
  regex: true,
  exact: false,
};

const { pattern } = toPattern(errorQuery.text, { regex: true });

export function isErrorLine(text: string): boolean {
  return pattern!.test(text);
}
