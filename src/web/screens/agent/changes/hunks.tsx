/** The lines of a file's diff with the comments on them. A click on a line number opens a comment. */
import type { Hunk as HunkData } from 'gitdiff-parser';
import { type ReactNode, type RefObject, useMemo, useRef, useState } from 'react';
import { getChangeKey, type RenderGutter } from 'react-diff-view';
import DiffTable from '../../../diffs/diff-table.tsx';
import { CommentBox, CommentView } from './comment-box.tsx';
import { type Comment, describeLines, isOnLine, withComment } from './comments.ts';
import { findGaps, isContextIgnored } from './context.ts';
import { MoreLines } from './more-lines.tsx';
import { type FileChange, findChange, getPlace, linesUpTo, type Place, paired, visible } from './parsed.ts';
import type { ChangeComments } from './stored.ts';
import type { View } from './use-diff-view.ts';
import { useKeepPlace } from './use-keep-place.ts';

export interface HunksProps {
  agent_id: string;
  path: string;
  status: FileChange['status'];
  hunks: HunkData[];
  view: View;
  scroller: RefObject<HTMLElement | null>;
  /** Unchanged lines around each change, as they were asked for. */
  context: number;
  /** Shows more of them; null if no more can be shown. */
  onMore: (() => void) | null;
  comments: readonly Comment[];
  onComments: ChangeComments;
}

export function Hunks(props: HunksProps) {
  const { agent_id, path, view, comments, onComments, hunks, status } = props;
  const shown = useMemo(() => visible(view === 'split' ? paired(hunks) : hunks), [hunks, view]);
  const table = useRef<HTMLDivElement>(null);
  const more = useMore(props, table);
  const [open, setOpen] = useState<Place | null>(null);
  const mine = comments.filter((comment) => comment.path === path);
  const put = ({ side, line }: Place, text: string, first?: number) => {
    const lines = linesUpTo(hunks, { side, line }).filter((each) => each.line >= (first ?? line));
    const code = lines.map((each) => each.text).join('\n');
    const range = first !== undefined && { first };
    onComments((list) => withComment(list, { side, line, ...range, path, code, text }));
    setOpen(null);
  };
  const renderWidget = (place: Place): ReactNode => {
    const saved = mine.find((comment) => isOnLine(comment, path, place));
    if (open !== null && open.side === place.side && open.line === place.line) {
      return (
        <CommentBox
          name={`${agent_id}.${path}.${place.side}${place.line}`}
          line={place.line}
          first_min={linesUpTo(hunks, place)[0]?.line ?? place.line}
          before={saved}
          onDone={(text, first) => put(place, text, first)}
          onCancel={() => setOpen(null)}
        />
      );
    }
    return (
      saved && <CommentView comment={saved} onEdit={() => setOpen(place)} onDelete={() => put(place, '')} />
    );
  };
  const widgets: Record<string, ReactNode> = {};
  for (const place of [...mine, ...(open ? [open] : [])]) {
    const change = findChange(hunks, place);
    if (change) widgets[getChangeKey(change)] = renderWidget(place);
  }
  const lost = mine.filter((comment) => !findChange(hunks, comment));
  return (
    <>
      {lost.map((comment) => (
        <CommentView
          key={`${comment.side}${comment.line}`}
          comment={comment}
          note={`on ${describeLines(comment)}, no longer part of the diff`}
          onDelete={() => onComments((list) => withComment(list, { ...comment, text: '' }))}
        />
      ))}
      {more.note}
      <div ref={table}>
        <DiffTable
          path={path}
          hunks={shown}
          type={diffType(status)}
          view={view}
          widgets={widgets}
          renderGutter={gutter(setOpen)}
          renderMore={more.render}
        />
      </div>
    </>
  );
}

/** The buttons that show more lines, and a note if that is not possible. */
function useMore(
  { hunks, context, onMore, scroller }: HunksProps,
  table: RefObject<HTMLElement | null>,
): { note: ReactNode; render: (at: number) => ReactNode } {
  const is_ignored = isContextIgnored(hunks, context);
  const gaps = onMore === null || is_ignored ? [] : findGaps(hunks, context);
  const hold = useKeepPlace(table, scroller, hunks, (place) => {
    const at = hunks.findIndex((hunk) => findChange([hunk], place) !== null);
    const button = (n: number) => table.current?.querySelector<HTMLElement>(`[data-more="${n}"]`);
    return button(at) ?? (at === hunks.length - 1 ? button(hunks.length) : null) ?? null;
  });
  const note = is_ignored && (
    <p role="status" className="border-line border-b px-3 py-1 text-muted">
      This agent’s node runs an earlier release of svc, which cannot show more lines.
    </p>
  );
  const render = (at: number): ReactNode => {
    if (!gaps[at]) return null;
    const is_end = at === hunks.length;
    const changes = hunks[is_end ? at - 1 : at]!.changes.filter(({ type }) => type !== 'normal');
    const place = getPlace(changes.at(is_end ? -1 : 0)!);
    return (
      <MoreLines
        at={at}
        where={`${is_end ? 'below' : 'above'} line ${place.line}`}
        onMore={() => {
          hold(place);
          onMore?.();
        }}
      />
    );
  };
  return { note, render };
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
        data-line={`${place.side}${place.line}`}
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
