/** The dialog that deletes an agent, and states what happens to its folder and what is lost with it. */
import { queryOptions, useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { escapeHidden } from '../../../core/visible.ts';
import { type Answered, call } from '../../api/client.ts';
import { keys } from '../../api/keys.ts';
import type { AgentRecord } from '../../api/queries.ts';
import { Button, buttonClass } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ScrollBox } from '../../ui/scroll-box.tsx';
import { ActionError } from '../../ui/states.tsx';
import { showToast } from '../../ui/toast.tsx';
import { Loss } from '../worktrees/loss.tsx';
import type { Deletion } from './deleting.ts';
import { useLeave } from './leave.ts';

type Preview = NonNullable<Answered<'deleteAgent'>>;

export function DeleteAgent({
  agent,
  how,
  onClose,
}: {
  agent: AgentRecord;
  how: Deletion;
  onClose: () => void;
}) {
  const leave = useLeave(agent);
  const [is_chosen, setChosen] = useState(false);
  const running = agent.status === 'running';
  const worktree = agent.worktree_mode === 'create_worktree';
  const discard = how === 'discard';
  const preview = useQuery({ ...previewQuery(agent.id), enabled: worktree });
  const removed = preview.data?.worktree_removed;
  const remove = useDelete(agent, { discard, delete_worktree: discard || is_chosen, leave });
  const kept = remove.data?.worktree_kept;
  if (kept) return <Kept agent={agent} kept={kept} onClose={leave} />;
  return (
    <Dialog
      open
      onClose={onClose}
      title={discard ? `Discard the worktree of ${agent.name}?` : `Delete ${agent.name}?`}
    >
      <div className="flex flex-col gap-3">
        {running && <p>It is running, so it and everything it started will be stopped first.</p>}
        <p>
          {discard
            ? 'The agent is deleted together with its worktree, its log and its conversation.'
            : 'Its log and its conversation will be deleted.'}
        </p>
        {worktree ? (
          <div aria-live="polite" className="flex flex-col gap-3">
            <Fate agent={agent} preview={preview.data} failed={preview.error !== null}>
              {!discard && <Choice is_chosen={is_chosen} onChoose={setChosen} />}
            </Fate>
          </div>
        ) : (
          <p>The folder it works in is not changed.</p>
        )}
        <Leftovers leftovers={agent.leftovers} />
        <ActionError error={remove.error ?? preview.error} />
        <div className="flex justify-end gap-2">
          <Button variant="quiet" onClick={onClose}>
            Cancel
          </Button>
          <Button
            variant="danger"
            disabled={discard ? !removed : worktree && preview.isPending}
            busy={remove.isPending}
            onClick={() => remove.mutate()}
          >
            {discard
              ? remove.isPending
                ? 'Discarding…'
                : 'Discard worktree'
              : remove.isPending
                ? 'Deleting…'
                : 'Delete agent'}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

function useDelete(
  agent: AgentRecord,
  { discard, delete_worktree, leave }: { discard: boolean; delete_worktree: boolean; leave: () => void },
) {
  const is_open = useRef(true);
  useEffect(() => {
    is_open.current = true;
    return () => {
      is_open.current = false;
    };
  }, []);
  return useMutation({
    mutationFn: () =>
      call('deleteAgent', {
        params: { agent_id: agent.id },
        query: {
          ...(agent.status === 'running' && { force: true }),
          ...(delete_worktree && { delete_worktree }),
        },
      }),
    onSuccess: (answer) => {
      const { branch_kept, worktree_kept } = answer ?? {};
      // The dialog says so, unless the user has closed it.
      if (worktree_kept && is_open.current) return;
      if (worktree_kept) {
        const { reason, workdir } = worktree_kept;
        showToast(`${agent.name} was deleted`, escapeHidden(`Its worktree was kept: ${reason} (${workdir})`));
      } else if (discard) {
        const kept = branch_kept && `Its branch ${branch_kept.branch} was kept: ${branch_kept.reason}`;
        showToast(`Discarded the worktree of ${agent.name}`, kept && escapeHidden(kept));
      }
      leave();
    },
  });
}

function Kept({
  agent,
  kept,
  onClose,
}: {
  agent: AgentRecord;
  kept: NonNullable<Preview['worktree_kept']>;
  onClose: () => void;
}) {
  return (
    <Dialog open onClose={onClose} title={`${agent.name} was deleted`}>
      <p>Its worktree was kept: {escapeHidden(kept.reason)}</p>
      <p className="mt-2 break-all font-mono text-sm">{escapeHidden(kept.workdir)}</p>
      <div className="mt-3 flex items-center justify-end gap-2">
        <Link to="/worktrees" search={{}} className={buttonClass('quiet')}>
          Show kept worktrees
        </Link>
        <Button onClick={onClose}>Back to agents</Button>
      </div>
    </Dialog>
  );
}

/** What happens to the worktree. `children`: shown if work would be lost with it. */
function Fate({
  agent,
  preview,
  failed,
  children,
}: {
  agent: AgentRecord;
  preview: Preview | undefined;
  failed: boolean;
  children: ReactNode;
}) {
  if (failed) return <p>Its worktree is kept if it has uncommitted or unpushed work.</p>;
  if (!preview) return <p className="text-muted">Checking what would be lost…</p>;
  const { worktree_kept, worktree_removed } = preview;
  if (worktree_kept) return <p>Its worktree stays: {escapeHidden(worktree_kept.reason)}</p>;
  if (!worktree_removed) return <p>The folder it works in is not changed.</p>;
  const { lost, uncommitted, truncated } = worktree_removed;
  return (
    <>
      <div>
        {lost === null && <p>Its worktree is deleted too.</p>}
        <Loss lost={lost} repo={agent.worktree_repo} branch={agent.worktree_branch} />
      </div>
      {uncommitted && uncommitted.length > 0 && <Uncommitted files={uncommitted} truncated={truncated} />}
      {lost !== null && children}
    </>
  );
}

const listClass = 'max-h-40 rounded-md border border-line p-2';

/** Processes that svc does not end. */
function Leftovers({ leftovers }: Pick<AgentRecord, 'leftovers'>) {
  if (leftovers.length === 0) return null;
  return (
    <div>
      <p>
        Its last session left these processes running. svc does not end them or check whether they still run.
      </p>
      <ScrollBox label="Processes left running" className={listClass}>
        <ul className="text-sm">
          {leftovers.map(({ pid, command }) => (
            <li key={pid} className="break-words">
              {pid} <bdi className="font-mono">{escapeHidden(command)}</bdi>
            </li>
          ))}
        </ul>
      </ScrollBox>
    </div>
  );
}

type Files = NonNullable<NonNullable<Preview['worktree_removed']>['uncommitted']>;

function Uncommitted({ files, truncated }: { files: Files; truncated: boolean }) {
  return (
    <div>
      <p className="text-muted text-sm">Files with uncommitted changes</p>
      <ScrollBox label="Files with uncommitted changes" className={listClass}>
        <ul className="text-sm">
          {files.map(({ path, status }) => (
            <li key={path} className="break-words">
              <bdi className="font-mono">{escapeHidden(path)}</bdi>{' '}
              <span className="text-muted">{status.replaceAll('_', ' ')}</span>
            </li>
          ))}
        </ul>
        {truncated && <p className="text-muted text-sm">Not all of these files are listed.</p>}
      </ScrollBox>
    </div>
  );
}

function Choice({ is_chosen, onChoose }: { is_chosen: boolean; onChoose: (chosen: boolean) => void }) {
  const id = useId();
  return (
    <label htmlFor={id} className="tap flex items-center gap-2">
      <input
        id={id}
        type="checkbox"
        checked={is_chosen}
        onChange={(event) => onChoose(event.target.checked)}
        className="size-6 shrink-0"
      />
      Delete the worktree and lose this work. Otherwise, it is kept.
    </label>
  );
}

/** Asked anew each time, because the agent and people can work in the folder. */
function previewQuery(agent_id: string) {
  return queryOptions({
    queryKey: keys.agent_deletion(agent_id),
    queryFn: () =>
      call('deleteAgent', {
        params: { agent_id },
        query: { dry_run: true, force: true, delete_worktree: true },
      }) as Promise<Preview>,
    gcTime: 0,
    staleTime: 0,
    refetchOnWindowFocus: false,
    retry: false,
  });
}
