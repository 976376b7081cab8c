/** What the members of a run changed in their worktrees, with links to the diffs. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';
import { listMemberChanges } from '../../../features/runs/rules/changes.ts';
import { agentsQuery, type RunRecord } from '../../api/queries.ts';
import { ChangedLines } from '../agents/facts.tsx';

export function RunChanges({ run }: { run: RunRecord }) {
  const { data: agents } = useQuery(agentsQuery);
  const changes = useMemo(() => listMemberChanges(run, agents ?? []), [run, agents]);
  if (changes.length === 0) return null;
  return (
    <section
      aria-label="Changes"
      className="flex min-w-0 flex-wrap items-center gap-x-4 rounded-lg border border-line px-3 py-1"
    >
      <h2 className="font-medium max-sm:w-full">Changes</h2>
      <ul className="contents">
        {changes.map(({ member_id, agent_id, files, added, removed }) => (
          <li key={member_id} className="min-w-0 max-sm:w-full">
            <Link
              to="/agents/$agent_id/$tab"
              params={{ agent_id, tab: 'changes' }}
              className="tap inline-flex max-w-full items-center gap-1.5 hover:underline max-sm:w-full"
            >
              <span className="truncate">{member_id}</span>
              <span className="shrink-0 whitespace-nowrap text-muted tabular-nums max-sm:ml-auto">
                <ChangedLines added={added} removed={removed} />, {files} {files === 1 ? 'file' : 'files'}
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}
