/** Says that the record of a page was deleted. Apart from the other states, which the first script contains. */
import { Trash2 } from 'lucide-react';
import { Problem } from '../../core/problem.ts';

/** Whether a record could not be read because it does not exist. */
export function isDeleted(error: unknown): boolean {
  return error instanceof Problem && error.kind === 'not_found';
}

/** Shown above a record that was deleted while its page is open. Renders nothing for other errors. */
export function Deleted({ what, error }: { what: string; error: unknown }) {
  if (!isDeleted(error)) return null;
  return (
    <p role="status" className="flex items-center gap-2 bg-surface px-4 py-1 text-warning">
      <Trash2 aria-hidden className="size-4" />
      This {what} was deleted. The page shows it as it was.
    </p>
  );
}
