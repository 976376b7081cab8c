/** The lines of a file's diff. A click on a line number opens a comment. */
import { useQuery } from '@tanstack/react-query';
import type { Hunk as HunkData } from 'gitdiff-parser';
import { Download } from 'lucide-react';
import { memo, type ReactNode, useMemo, useState } from 'react';
import { getChangeKey, type RenderGutter } from 'react-diff-view';
import { escapeHidden } from '../../../../core/visible.ts';
import { type AgentRecord, changeQuery } from '../../../api/queries.ts';
import DiffTable from '../../../diffs/diff-table.tsx';
import { Button } from '../../../ui/button.tsx';
import { QueryState, Skeleton } from '../../../ui/states.tsx';
import { save } from '../output/save.ts';
import { CommentBox, CommentView } from './comment-box.tsx';
import { type Comment, isOnLine, withComment } from './comments.ts';
import { Counts } from './counts.tsx';
import {
  type ChangedFile,
  type FileChange,
  findChange,
  getPlace,
  type Place,
  paired,
  parsed,
  visible,
} from './parsed.ts';
import type { View } from './use-diff-view.ts';

export interface FileDiffProps {
  agent: AgentRecord;
  path: string;
  status: ChangedFile['status'] | undefined;
  view: View;
  /** It is read, and read again when it changes, only while it is near the screen. */
  is_near: boolean;
  /** Its height until it is read. */
  estimate_px: number;
  comments: readonly Comment[];
  onComments: (list: readonly Comment[]) => void;
}

/** Rendered again only when its own properties change, because tables of many lines take long. */
export const FileDiff = memo(function FileDiff(props: FileDiffProps) {
  const { agent, path, is_near, estimate_px } = props;
  const change = changeQuery(agent.id, path);
  const read = useQuery({ ...change, enabled: is_near, staleTime: 0, refetchOnWindowFocus: true });
  if (read.data === undefined && !read.error) {
    return (
      <div data-unread style={{ height: estimate_px }}>
        {is_near && <Skeleton />}
      </div>
    );
  }
  return <QueryState read={read}>{(found) => <Lines {...props} change={found} />}</QueryState>;
});

function Lines({ change, ...props }: FileDiffProps & { change: FileChange }) {
  const shown = useMemo(() => parsed(change), [change]);
  const moved = change.from !== null && (
    <p className="border-line border-b px-3 py-1 text-muted">
      {change.status === 'copied' ? 'Copied' : 'Renamed'} from{' '}
      <code className="break-all">{escapeHidden(change.from)}</code>
    </p>
  );
  return (
    <>
      {moved}
      {shown.type === 'hunks' ? (
        <Hunks {...props} hunks={shown.hunks} status={change.status} />
      ) : (
        <NoLines type={shown.type} change={change} />
      )}
    </>
  );
}

const why_not = {
  binary: 'This is a binary file.',
  same: 'No lines in this file have changed.',
  large: 'This diff is too large to show. Download it to see all of it.',
};

function NoLines({ type, change }: { type: keyof typeof why_not; change: FileChange }) {
  const { path, additions, deletions, diff, truncated } = change;
  const name = `${path.slice(path.lastIndexOf('/') + 1)}.diff`;
  return (
    <div className="flex flex-col items-center gap-3 px-4 py-6 text-center">
      <p className="text-prose">{why_not[type]}</p>
      {type === 'large' && (
        <>
          <Counts additions={additions} deletions={deletions} />
          <Button icon={<Download aria-hidden />} onClick={() => save(new Blob([diff]), name)}>
            {truncated ? 'Download the first part of the diff' : 'Download the diff'}
          </Button>
        </>
      )}
    </div>
  );
}

type HunksProps = Omit<FileDiffProps, 'status'> & { hunks: HunkData[]; status: FileChange['status'] };

function Hunks({ agent, path, view, comments, onComments, hunks, status }: HunksProps) {
  const shown = useMemo(() => visible(view === 'split' ? paired(hunks) : hunks), [hunks, view]);
  const [open, setOpen] = useState<Place | null>(null);
  const mine = comments.filter((comment) => comment.path === path);
  const put = (place: Place, code: string, text: string) => {
    onComments(withComment(comments, { ...place, path, code, text }));
    setOpen(null);
  };
  const renderWidget = (place: Place, code: string): ReactNode => {
    const saved = mine.find((comment) => isOnLine(comment, path, place));
    if (open !== null && open.side === place.side && open.line === place.line) {
      return (
        <CommentBox
          name={`${agent.id}.${path}.${place.side}${place.line}`}
          line={place.line}
          before={saved?.text ?? ''}
          onDone={(text) => put(place, code, text)}
          onCancel={() => setOpen(null)}
        />
      );
    }
    return (
      saved && (
        <CommentView comment={saved} onEdit={() => setOpen(place)} onDelete={() => put(place, code, '')} />
      )
    );
  };
  const widgets: Record<string, ReactNode> = {};
  for (const place of [...mine, ...(open ? [open] : [])]) {
    const change = findChange(hunks, place);
    if (change) widgets[getChangeKey(change)] = renderWidget(place, change.content);
  }
  const lost = mine.filter((comment) => !findChange(hunks, comment));
  return (
    <>
      {lost.map((comment) => (
        <CommentView
          key={`${comment.side}${comment.line}`}
          comment={comment}
          note={`on line ${comment.line}, which is no longer part of the diff`}
          onDelete={() => onComments(withComment(comments, { ...comment, text: '' }))}
        />
      ))}
      <DiffTable
        path={path}
        hunks={shown}
        type={diffType(status)}
        view={view}
        widgets={widgets}
        renderGutter={gutter(setOpen)}
      />
    </>
  );
}

/** Line numbers that open a comment. */
function gutter(onOpen: (place: Place) => void): RenderGutter {
  return ({ change, side, renderDefault }) => {
    const place = getPlace(change);
    if (place.side !== side) return renderDefault();
    const removed = side === 'old' ? 'removed ' : '';
    return (
      <button
        type="button"
        aria-label={`Comment on ${removed}line ${place.line}`}
        title="Comment"
        onClick={() => onOpen(place)}
        className="block min-h-6 w-full text-right hover:underline"
      >
        {place.line}
      </button>
    );
  };
}

function diffType(status: FileChange['status']): 'add' | 'delete' | 'modify' {
  if (status === 'added' || status === 'untracked') return 'add';
  return status === 'deleted' ? 'delete' : 'modify';
}
