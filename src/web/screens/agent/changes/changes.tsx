/** What an agent changed in its folder: the tree of files, their diffs one below the other, and comments on lines. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { RefreshCw } from 'lucide-react';
import { type ComponentProps, type ReactNode, useEffect, useMemo, useRef } from 'react';
import { escapeHidden } from '../../../../core/visible.ts';
import type { Answered } from '../../../api/client.ts';
import { keys } from '../../../api/keys.ts';
import { type AgentRecord, changesQuery } from '../../../api/queries.ts';
import { useAgentLog } from '../../../live/agent-log.ts';
import { useStepKeys } from '../../../shell/step-keys.ts';
import { IconButton } from '../../../ui/button.tsx';
import { cx } from '../../../ui/cx.ts';
import { Segmented } from '../../../ui/segmented.tsx';
import { Empty, QueryState } from '../../../ui/states.tsx';
import type { Comment } from './comments.ts';
import { CommentsBar } from './comments-bar.tsx';
import { Counts } from './counts.tsx';
import { FileList } from './file-list.tsx';
import { scrollToHunk, useFileScroll } from './file-scroll.ts';
import { FileSection } from './file-section.tsx';
import type { ChangedFile } from './parsed.ts';
import { useCommentDrafts, useComments, useViewed } from './stored.ts';
import { TakeMenu } from './take-menu.tsx';
import { useDiffView, type View } from './use-diff-view.ts';
import { useWaitingChanges, WaitingChanges } from './waiting-changes.tsx';

/** Tools often end in quick succession, so wait a moment before reading. */
const SETTLED_MS = 500;

export function ChangesTab({ agent }: { agent: AgentRecord }) {
  const read = useQuery({ ...changesQuery(agent.id), staleTime: 0, refetchOnWindowFocus: true });
  const reload = useReload(agent.id);
  return (
    <QueryState read={read} rows={4}>
      {(changes) => <Changes agent={agent} changes={changes} busy={read.isFetching} reload={reload} />}
    </QueryState>
  );
}

/** Reads the changes again when a tool or a turn has ended. */
function useReload(agent_id: string): () => void {
  const queries = useQueryClient();
  const { view } = useAgentLog(agent_id);
  const ended = useMemo(
    () =>
      view.turns.filter(({ ended_ts }) => ended_ts !== null).length +
      view.items.filter((item) => item.kind === 'tool' && item.ended_ts !== null).length,
    [view.turns, view.items],
  );
  const reload = () => {
    void queries.invalidateQueries({ queryKey: keys.changes(agent_id) });
    void queries.invalidateQueries({ queryKey: keys.change(agent_id) });
  };
  const held = useRef(reload);
  held.current = reload;
  useEffect(() => {
    if (ended === 0) return;
    const timer = setTimeout(() => held.current(), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [ended]);
  return reload;
}

const NO_COMMENTS: readonly Comment[] = [];

interface ChangesProps {
  agent: AgentRecord;
  changes: Answered<'getChanges'>;
  busy: boolean;
  reload: () => void;
}

function Changes({ agent, changes, busy, reload }: ChangesProps) {
  const { git, head, files, truncated } = changes;
  const { file: selected_file } = useSearch({ from: '/app/agents/$agent_id/$tab' });
  const navigate = useNavigate({ from: '/agents/$agent_id/$tab' });
  const [comments, setComments] = useComments(agent.id);
  const viewed = useViewed(agent.id, head);
  const asks = useWaitingChanges(agent.id);
  const [layout, setLayout] = useDiffView();
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const list = comments?.list ?? NO_COMMENTS;
  const drafts = useCommentDrafts(agent.id);
  const commented = [...list, ...drafts].map(({ path }) => path);
  const scroll = useFileScroll(scroller, content, selected_file);
  const open = (next: string | undefined) => {
    void navigate({ search: (search) => ({ ...search, file: next }), resetScroll: false });
    if (next !== undefined) scroll.scrollTo(next);
  };
  useStepKeys((direction) => scrollToHunk(scroller.current, direction));

  const refresh = (
    <IconButton
      label="Refresh"
      icon={<RefreshCw aria-hidden className={cx(busy && 'animate-spin')} />}
      onClick={reload}
    />
  );
  const bar = list.length > 0 && (
    <CommentsBar agent={agent} comments={comments!} onChange={setComments} onOpen={open} />
  );
  const has_files = git && files.length > 0;
  if (!has_files && commented.length === 0) {
    return (
      <>
        <WaitingChanges asks={asks} />
        <div className="scroll-y flex-1">
          {/* A change that waits is what this page is about then. */}
          {!(git && asks.length > 0) && <NoChanges agent={agent} git={git} refresh={refresh} />}
        </div>
      </>
    );
  }
  return (
    <>
      <Toolbar {...{ agent, changes, viewed, layout, refresh }} onLayout={setLayout} />
      <WaitingChanges asks={asks} />
      <div className="flex min-h-0 flex-1">
        {has_files && (
          <FileList
            files={files}
            truncated={truncated}
            chosen={scroll.current ?? selected_file ?? files[0]?.path}
            viewed={viewed}
            comments={list}
            onOpen={open}
            className={cx('w-full md:w-72', selected_file !== undefined && 'max-md:hidden')}
          />
        )}
        <div
          ref={scroller}
          onScroll={scroll.onScroll}
          className={cx(
            'scroll-y relative min-w-0 flex-1',
            has_files && selected_file === undefined && 'max-md:hidden',
          )}
        >
          <div ref={content}>
            <Sections
              {...{ agent, files, scroller, viewed, view: layout.view, comments: list }}
              others={selected_file === undefined ? commented : [selected_file, ...commented]}
              onComments={setComments}
              onBack={() => open(undefined)}
            />
          </div>
        </div>
      </div>
      {bar}
    </>
  );
}

type SectionsProps = Omit<ComponentProps<typeof FileSection>, 'path' | 'listed' | 'is_viewed' | 'onView'> & {
  files: readonly ChangedFile[];
  viewed: ReturnType<typeof useViewed>;
  /** The file in the URL, and those with comments. Some may no longer be changed; then their sections say so. */
  others: readonly string[];
};

function Sections({ files, viewed, others, ...shared }: SectionsProps) {
  const listed = new Map(files.map((file) => [file.path, file]));
  const gone = new Set(others.filter((path) => !listed.has(path)));
  // One list, so that a comment stays open when its file moves from one group to the other.
  return [...gone, ...listed.keys()].map((path) => {
    const file = listed.get(path);
    return (
      <FileSection
        key={path}
        {...shared}
        path={path}
        listed={file}
        is_viewed={file !== undefined && viewed.is(file)}
        onView={(next) => file && viewed.set(file, next)}
      />
    );
  });
}

function NoChanges({ agent, git, refresh }: { agent: AgentRecord; git: boolean; refresh: ReactNode }) {
  const title = git
    ? 'No changes yet. Files that the agent changes appear here.'
    : 'This folder is not a git repository, so svc cannot show what changed.';
  return (
    <Empty title={title} {...(git && { cli: `git -C ${agent.workdir} status` })}>
      {refresh}
    </Empty>
  );
}

const layouts = [
  { value: 'unified', label: 'Unified' },
  { value: 'split', label: 'Split' },
] as const;

function Toolbar({
  agent,
  viewed,
  changes,
  layout,
  onLayout,
  refresh,
}: {
  agent: AgentRecord;
  viewed: ReturnType<typeof useViewed>;
  changes: ChangesProps['changes'];
  layout: { view: View; is_wide: boolean };
  onLayout: (view: View) => void;
  refresh: ReactNode;
}) {
  const { branch, base, files, truncated } = changes;
  const shown_branch = escapeHidden(branch ?? 'no branch');
  const seen = files.filter((file) => viewed.is(file)).length;
  return (
    <div className="flex shrink-0 flex-wrap items-center gap-x-3 gap-y-1 border-line border-b px-3 py-1 text-muted">
      <span>
        {files.length}
        {truncated && '+'} {files.length === 1 ? 'file' : 'files'}
      </span>
      <Counts additions={sum(files, 'additions')} deletions={sum(files, 'deletions')} />
      {seen > 0 && (
        <span>
          {seen}/{files.length} viewed
        </span>
      )}
      <span
        className="min-w-0 truncate font-mono text-sm max-md:hidden"
        title={`${shown_branch}, compared with ${base ?? 'nothing'}`}
      >
        {shown_branch}
        {base && ` compared with ${base.slice(0, 8)}`}
      </span>
      <span className="ml-auto flex items-center gap-1">
        {layout.is_wide && (
          <Segmented label="Diff layout" segments={layouts} value={layout.view} onValue={onLayout} />
        )}
        {files.length > 0 && <TakeMenu agent={agent} changes={changes} />}
        {refresh}
      </span>
    </div>
  );
}

function sum(files: ChangesProps['changes']['files'], key: 'additions' | 'deletions'): number {
  return files.reduce((total, file) => total + (file[key] ?? 0), 0);
}
