/** The dialog of a kept worktree: where it is, and what would be lost if it were removed. */
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { call } from '../../api/client.ts';
import { keys } from '../../api/keys.ts';
import type { WorktreeRecord } from '../../api/queries.ts';
import { useSession } from '../../api/session.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ActionError } from '../../ui/states.tsx';
import { showToast } from '../../ui/toast.tsx';
import { FolderPath } from '../agent/side/folder-path.tsx';
import { Loss } from './loss.tsx';

interface Removal {
  /** The work that exists only here, as the node reports it; null: none. */
  lost: string | null;
  /** Why it cannot be removed now; null if it can. */
  blocked: string | null;
  /** The folder belongs to another agent now: only the record of the worktree is removed, by force. */
  record_only: boolean;
}

export function RemoveWorktree({ worktree, onClose }: { worktree: WorktreeRecord; onClose: () => void }) {
  const { id, agent_name, workdir, repo, branch, node_id } = worktree;
  const user = useSession()?.user;
  const may_remove = user?.role === 'root' || user?.id === worktree.owner_id;
  return (
    <Dialog open onClose={onClose} title={`Worktree of ${agent_name}`}>
      <div className="flex flex-col gap-3">
        <div>
          <FolderPath path={workdir} />
          <p className="break-words text-muted text-sm">
            {[
              repo === null ? 'Empty folder' : `Of ${repo}`,
              branch !== null && `branch ${branch}`,
              node_id !== 'main' && `on node ${node_id}`,
            ]
              .filter(Boolean)
              .join(' · ')}
          </p>
        </div>
        {may_remove ? (
          <Removing key={id} worktree={worktree} onClose={onClose} />
        ) : (
          <p>Only the owner of its agent can remove it.</p>
        )}
      </div>
    </Dialog>
  );
}

function Removing({ worktree, onClose }: { worktree: WorktreeRecord; onClose: () => void }) {
  const queries = useQueryClient();
  const read = useQuery(removalQuery(worktree.id));
  const remove = useMutation({
    mutationFn: async (removal: Removal) => {
      const query = { force: removal.lost !== null || removal.record_only };
      const result = await call('deleteWorktree', { params: { worktree_id: worktree.id }, query });
      if (result.outcome === 'kept') throw new Error(`It was kept: ${result.reason}`);
      return result;
    },
    onSuccess: ({ branch_kept, record_only }) => {
      showToast(
        `Removed the ${record_only ? 'record of the ' : ''}worktree of ${worktree.agent_name}`,
        branch_kept ? `Its branch ${branch_kept.branch} was kept: ${branch_kept.reason}` : undefined,
      );
      onClose();
    },
    onSettled: () => queries.invalidateQueries({ queryKey: keys.worktrees }),
  });
  const removal = read.data;
  return (
    <>
      <div aria-live="polite">
        {removal ? (
          <Consequences worktree={worktree} removal={removal} />
        ) : (
          !read.error && <p className="text-muted">Checking what would be lost…</p>
        )}
      </div>
      <ActionError error={remove.error ?? read.error} />
      <div className="flex justify-end gap-2">
        <Button variant="quiet" onClick={onClose}>
          Cancel
        </Button>
        <Button
          variant="danger"
          disabled={!removal || removal.blocked !== null}
          busy={remove.isPending}
          onClick={() => removal && remove.mutate(removal)}
        >
          {remove.isPending ? 'Removing…' : 'Remove'}
        </Button>
      </div>
    </>
  );
}

function Consequences({
  worktree: { diff, repo, branch },
  removal,
}: {
  worktree: WorktreeRecord;
  removal: Removal;
}) {
  const { lost, blocked, record_only } = removal;
  if (blocked !== null) return <p>It cannot be removed now: {blocked}</p>;
  if (record_only)
    return <p>The folder belongs to another agent now and stays. Only the entry in this list is removed.</p>;
  return (
    <>
      <Loss lost={lost} repo={repo} branch={branch} />
      {lost !== null && diff && diff.files > 0 && (
        <p className="mt-1 text-muted text-sm">
          {`When its agent was deleted, ${diff.files} ${diff.files === 1 ? 'file' : 'files'} had changes: ${diff.added} lines added, ${diff.removed} removed.`}
        </p>
      )}
    </>
  );
}

/** Asked anew each time, because people can work in the folder. */
function removalQuery(worktree_id: string) {
  const tryToRemove = (force: boolean) =>
    call('deleteWorktree', { params: { worktree_id }, query: { force, dry_run: true } });
  return queryOptions({
    queryKey: keys.worktree_removal(worktree_id),
    queryFn: async (): Promise<Removal> => {
      const { outcome, reason, record_only } = await tryToRemove(false);
      if (record_only || outcome === 'removable') return { lost: null, blocked: null, record_only };
      // Unsaved work can be removed by force, a folder in which an agent works cannot.
      const forced = await tryToRemove(true);
      return { lost: reason, blocked: forced.outcome === 'kept' ? forced.reason : null, record_only };
    },
    gcTime: 0,
    staleTime: 0,
    retry: false,
  });
}
