/** The folders in which a refused folder or repository would be allowed. */
import { Button } from '../../ui/button.tsx';
import type { FormState } from './fields.tsx';

/** Shown after the service has refused a folder or repository: where it would be allowed. */
export function AllowedPaths({ form }: { form: FormState }) {
  const { draft, problems, allowed, change } = form;
  if (allowed.length === 0) return null;
  return (
    <div className="mt-1 rounded-md border border-line bg-surface p-2 text-sm">
      <p>
        {problems.repo
          ? 'The repository must be in one of these folders:'
          : 'The folder must be in one of these folders:'}
      </p>
      <ul className="my-1 list-disc pl-5 font-mono">
        {allowed.map((path) => (
          <li key={path} className="break-all">
            {path}
          </li>
        ))}
      </ul>
      {draft.where === 'folder' && (
        <Button onClick={() => change({ where: 'worktree', repo: draft.workdir, workdir: '' })}>
          Use a worktree instead
        </Button>
      )}
    </div>
  );
}
