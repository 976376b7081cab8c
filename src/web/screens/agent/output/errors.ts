/** Lines of output that report an error, as compilers, test runners and shells write them. */
import { toPattern } from '../../../transcript/find.ts';
import type { FindQuery } from './finder.ts';

/** For the same search as that of the user. A plural, such as in `0 errors`, is a count and no report. */
export const errorQuery: FindQuery = {
  text: String.raw`(?:error|exception)(?![\w-])|\b(?:fatal|panicked|traceback|segmentation fault)\b|\bERR!|: not found$`,
  regex: true,
  exact: false,
};

const { pattern } = toPattern(errorQuery.text, { regex: true });

export function isErrorLine(text: string): boolean {
  return pattern!.test(text);
}
