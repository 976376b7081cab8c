/** What is lost for good with a worktree. */
import { escapeHidden } from '../../../core/visible.ts';

/**
 * `lost`: the work that exists only in the worktree, as its node reports it; null: none. `repo`: null for a folder without
 * git, of which only an empty one loses nothing.
 */
export function Loss({
  lost,
  repo,
  branch,
}: {
  lost: string | null;
  repo: string | null;
  branch: string | null;
}) {
  if (lost === null && repo === null) return <p>The folder is empty.</p>;
  if (lost === null)
    return (
      <p>
        {branch === null ? 'The folder is deleted.' : 'The folder and its branch are deleted.'} Nothing is
        lost: all of its work also exists elsewhere.
      </p>
    );
  return (
    <>
      <p>The worktree has work that exists nowhere else:</p>
      <ul className="my-1 list-disc pl-5">
        {lost.split(', ').map((part) => (
          <li key={part} className="break-words">
            {escapeHidden(part)}
          </li>
        ))}
      </ul>
      <p>
        {branch === null
          ? 'Everything in the folder is lost for good.'
          : 'Commits on its branch stay in the repository. Everything else in the folder is lost for good.'}
      </p>
    </>
  );
}
