/** The dialog that deletes an agent, and states what happens to its folder. */
import { useMutation } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useId, useState } from 'react';
import { call } from '../../api/client.ts';
import type { AgentRecord } from '../../api/queries.ts';
import { Button, buttonClass } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ActionError } from '../../ui/states.tsx';
import { useLeave } from './leave.ts';

export function DeleteAgent({ agent, onClose }: { agent: AgentRecord; onClose: () => void }) {
  const leave = useLeave(agent);
  const id = useId();
  const [all, setAll] = useState(false);
  const running = agent.status === 'running';
  const worktree = agent.worktree_mode === 'create_worktree';
  const remove = useMutation({
    mutationFn: () =>
      call('deleteAgent', {
        params: { agent_id: agent.id },
        query: { ...(running && { force: true }), ...(all && { delete_worktree: true }) },
      }),
    onSuccess: (answer) => {
      if (!answer) leave();
    },
  });
  const worktree_reason = remove.data?.worktree_kept;
  if (worktree_reason) {
    return (
      <Dialog open onClose={leave} title={`${agent.name} was deleted`}>
        <p>Its worktree was kept: {worktree_reason.reason}</p>
        <p className="mt-2 break-all font-mono text-sm">{worktree_reason.workdir}</p>
        <div className="mt-3 flex items-center justify-end gap-2">
          <Link to="/worktrees" search={{}} className={buttonClass('quiet')}>
            Show kept worktrees
          </Link>
          <Button onClick={leave}>Back to agents</Button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog open onClose={onClose} title={`Delete ${agent.name}?`}>
      <div className="flex flex-col gap-3">
        {running && <p>It is running, so it and everything it started will be stopped first.</p>}
        <p>Its log and its conversation will be deleted.</p>
        {worktree ? (
          <>
            <p>Its worktree will be deleted too, unless it has uncommitted or unpushed work.</p>
            <label htmlFor={id} className="tap flex items-center gap-2">
              <input
                id={id}
                type="checkbox"
                checked={all}
                onChange={(event) => setAll(event.target.checked)}
                className="size-6 shrink-0"
              />
              Delete the worktree even with uncommitted or unpushed work
            </label>
          </>
        ) : (
          <p>The folder it works in is not changed.</p>
        )}
        <ActionError error={remove.error} />
        <div className="flex justify-end gap-2">
          <Button variant="quiet" onClick={onClose}>
            Cancel
          </Button>
          <Button variant="danger" busy={remove.isPending} onClick={() => remove.mutate()}>
            {remove.isPending ? 'Deleting…' : 'Delete agent'}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
