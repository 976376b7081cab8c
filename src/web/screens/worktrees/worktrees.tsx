/** The worktrees that outlived their agents, because they have work that exists nowhere else. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { GitBranch, Trash2 } from 'lucide-react';
import { escapeHidden } from '../../../core/visible.ts';
import { keptWorktreesQuery, type WorktreeRecord } from '../../api/queries.ts';
import { NO_ROW_KEYS } from '../../shell/list-keys.ts';
import { buttonClass } from '../../ui/button.tsx';
import { rowClass } from '../../ui/row-class.ts';
import { Screen } from '../../ui/screen.tsx';
import { Select } from '../../ui/select.tsx';
import { Empty, ListNote, QueryState } from '../../ui/states.tsx';
import { ShortAgo } from '../../ui/time.tsx';
import { ChangedLines } from '../agents/facts.tsx';
import { lastPart, shortBranch } from '../agents/order.ts';
import { RemoveWorktree } from './remove.tsx';

const ABOUT = 'The worktree of a deleted agent is kept if it has work that exists nowhere else.';

export function Worktrees() {
  const search = useSearch({ from: '/app/worktrees' });
  const navigate = useNavigate({ from: '/worktrees' });
  const read = useQuery(keptWorktreesQuery);
  const all = read.data ?? [];
  const open = all.find(({ id }) => id === search.worktree);
  const node_ids = new Set(all.map(({ node_id }) => node_id));
  const show = (next: typeof search) => void navigate({ search: next });
  return (
    <Screen
      title="Kept worktrees"
      back={{ to: '/agents', label: 'agents' }}
      rowKeys={NO_ROW_KEYS}
      toolbar={
        (node_ids.size > 1 || search.node !== undefined) && (
          <NodeFilter
            node_ids={node_ids}
            chosen={search.node}
            onChange={(node) => show(node === undefined ? {} : { node })}
          />
        )
      }
    >
      <QueryState read={read}>
        {(worktrees) => {
          const shown = worktrees.filter(
            ({ node_id }) => search.node === undefined || node_id === search.node,
          );
          if (worktrees.length === 0)
            return (
              <Empty
                title={`No worktrees are kept. ${ABOUT}`}
                cli="svc worktrees ls --kept"
                operation="listWorktrees"
              >
                <Link to="/agents" search={{}} className={buttonClass()}>
                  Open agents
                </Link>
              </Empty>
            );
          if (shown.length === 0)
            return (
              <Empty title={`No worktrees are kept on node ${search.node}.`}>
                <Link to="/worktrees" search={{}} className={buttonClass()}>
                  Show all {worktrees.length}
                </Link>
              </Empty>
            );
          return (
            <>
              <WorktreeTable worktrees={shown} node_id={search.node} />
              <ListNote
                rows={shown.length}
                title={`${ABOUT} Remove it when you no longer need that work.`}
                cli="svc worktrees ls --kept"
                operation="listWorktrees"
              />
            </>
          );
        }}
      </QueryState>
      {open && (
        <RemoveWorktree
          key={open.id}
          worktree={open}
          onClose={() => show(search.node === undefined ? {} : { node: search.node })}
        />
      )}
    </Screen>
  );
}

function NodeFilter({
  node_ids,
  chosen,
  onChange,
}: {
  node_ids: ReadonlySet<string>;
  chosen: string | undefined;
  onChange: (node_id: string | undefined) => void;
}) {
  const ids = chosen === undefined ? node_ids : new Set([...node_ids, chosen]);
  return (
    <span className="w-44">
      <Select
        aria-label="Node"
        value={chosen ?? ''}
        onChange={(value) => onChange(value || undefined)}
        choices={[
          { value: '', label: 'All nodes' },
          ...[...ids].sort().map((id) => ({ value: id, label: id })),
        ]}
      />
    </span>
  );
}

const row = `grid grid-cols-[minmax(0,1fr)_auto_2.75rem] items-center gap-x-2 px-3 md:grid-cols-[minmax(0,1.6fr)_minmax(0,1fr)_5.25rem_4rem_2rem] md:gap-x-3 md:px-4`;

function WorktreeTable({
  worktrees,
  node_id,
}: {
  worktrees: readonly WorktreeRecord[];
  node_id: string | undefined;
}) {
  return (
    <table aria-label="Kept worktrees" className="block">
      <thead className="block max-md:sr-only">
        <tr className={`${row} h-7 border-line border-b text-muted text-xs *:text-left *:font-medium`}>
          <th scope="col">Agent, and why it was kept</th>
          <th scope="col">Repository</th>
          <th scope="col" className="text-right!">
            Changes
          </th>
          <th scope="col" className="text-right!">
            Kept
          </th>
          <th scope="col">
            <span className="sr-only">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody className="block">
        {worktrees.map((worktree) => (
          <WorktreeRow key={worktree.id} worktree={worktree} node_id={node_id} />
        ))}
      </tbody>
    </table>
  );
}

function WorktreeRow({ worktree, node_id: node }: { worktree: WorktreeRecord; node_id: string | undefined }) {
  const { id, agent_name, reason, workdir, repo, branch, node_id, diff, kept_at } = worktree;
  const search = { worktree: id, ...(node !== undefined && { node }) };
  return (
    <tr data-row={id} className={`${row} ${rowClass}`}>
      <th scope="row" className="min-w-0 text-left font-normal">
        <Link
          to="/worktrees"
          search={search}
          title={escapeHidden(workdir)}
          className="block truncate font-semibold after:absolute after:inset-0 hover:underline"
        >
          {agent_name}
        </Link>
        <span className="block truncate text-muted text-sm" title={reason ?? undefined}>
          {reason}
        </span>
      </th>
      <td className="min-w-0 text-muted text-sm max-md:hidden">
        <span className="flex min-w-0 items-center gap-1.5">
          <span
            className="shrink-0 truncate not-last:max-w-3/5 last:max-w-full"
            title={escapeHidden(repo ?? workdir)}
          >
            {repo === null ? 'Empty folder' : escapeHidden(lastPart(repo))}
          </span>
          {branch !== null && (
            <span className="inline-flex min-w-0 items-center gap-1" title={branch}>
              <GitBranch aria-label="branch" className="size-3.5 shrink-0" />
              <span className="truncate">{shortBranch(branch)}</span>
            </span>
          )}
        </span>
        {node_id !== 'main' && <span className="block truncate">{`node:${node_id}`}</span>}
      </td>
      <td
        className="whitespace-nowrap text-right text-sm tabular-nums"
        title={diff ? `${diff.files} changed ${diff.files === 1 ? 'file' : 'files'}` : undefined}
      >
        {diff && <ChangedLines {...diff} />}
        {kept_at && <ShortAgo at={kept_at} className="block text-muted md:hidden" />}
      </td>
      <td className="text-right text-muted text-sm max-md:hidden">{kept_at && <ShortAgo at={kept_at} />}</td>
      <td className="flex justify-end">
        <Link
          to="/worktrees"
          search={search}
          tabIndex={-1}
          aria-label={`Remove the worktree of ${agent_name}`}
          title="Remove…"
          className={buttonClass('quiet', 'relative z-1 min-w-7 px-1 pointer-coarse:min-w-11')}
        >
          <Trash2 aria-hidden />
        </Link>
      </td>
    </tr>
  );
}
