/** The lines of a file's diff with the comments on them. A click on a line number opens a comment. */
import type { Change, Hunk as HunkData } from 'gitdiff-parser';
import { type ReactNode, type RefObject, useMemo, useRef, useState } from 'react';
import { getChangeKey, type RenderGutter } from 'react-diff-view';
import { escapeHidden } from '../../../../core/visible.ts';
import DiffTable from '../../../diffs/diff-table.tsx';
import { type Caret, CommentBox, CommentView } from './comment-box.tsx';
import { type Comment, isOnLine, withAnchored, withComment } from './comments.ts';
import { findGaps, isContextIgnored } from './context.ts';
import { Draft, LostComments } from './lost.tsx';
import { MoreLines } from './more-lines.tsx';
import {
  type Anchor,
  anchorAt,
  type FileChange,
  findAnchor,
  findChange,
  getPlace,
  type Place,
  paired,
  visible,
} from './parsed.ts';
import { type ChangeComments, useCommentDrafts } from './stored.ts';
import type { View } from './use-diff-view.ts';
import { useKeepPlace } from './use-keep-place.ts';

export interface HunksProps {
  agent_id: string;
  path: string;
  status: FileChange['status'];
  /** None if the diff is not shown, or the file no longer has changes. */
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
  const { open, now, openAt, close, ...box_refs } = useOpenBox(hunks);
  const mine = comments.filter((comment) => comment.path === path);
  const drafts = useCommentDrafts(agent_id, path);
  const nameOf = ({ side, line }: Place) => `${agent_id}.${path}.${side}${line}`;
  const edited = mine.find((comment) => open !== null && isOnLine(comment, path, open));
  const box = open && (
    <CommentBox
      key={`${open.side}${open.line}`}
      name={nameOf(open)}
      line={open.line}
      // The hunk of a lost draft is not known.
      first_min={open.lines[0]?.line ?? 1}
      before={edited}
      note={noteOnMove(open, now)}
      {...box_refs}
      onDone={(text, first) => {
        onComments((list) => withAnchored(list, { path, open, now, text, first }));
        close();
      }}
      onCancel={close}
    />
  );
  const widgets: Record<string, ReactNode> = {};
  const lost: Comment[] = [];
  for (const comment of mine.filter((one) => one !== edited)) {
    const change = findChange(hunks, comment);
    const remove = () => onComments((list) => withComment(list, { ...comment, text: '' }));
    if (change)
      widgets[getChangeKey(change)] = (
        <CommentView comment={comment} onEdit={() => openAt(comment)} onDelete={remove} />
      );
    else lost.push(comment);
  }
  const isOpen = ({ side, line }: Place) => open?.side === side && open.line === line;
  const lost_drafts: ReactNode[] = [];
  for (const place of drafts.filter((each) => !isOpen(each))) {
    const change = findChange(hunks, place);
    const name = nameOf(place);
    const draft = (
      <Draft key={name} {...{ name, path, place }} is_lost={!change} onEdit={() => openAt(place)} />
    );
    if (change) addWidget(widgets, change, draft);
    else lost_drafts.push(draft);
  }
  const line = now && findChange(hunks, now);
  if (line) addWidget(widgets, line, box);
  return (
    <>
      <LostComments comments={lost} onComments={onComments} />
      {lost_drafts}
      {!line && box}
      {more.note}
      <div ref={table}>
        {shown.length > 0 && (
          <DiffTable
            path={path}
            hunks={shown}
            type={diffType(status)}
            view={view}
            widgets={widgets}
            renderGutter={gutter(openAt)}
            renderMore={more.render}
          />
        )}
      </div>
    </>
  );
}

/** Adds an element below those of a line. */
function addWidget(widgets: Record<string, ReactNode>, line: Change, element: ReactNode): void {
  const key = getChangeKey(line);
  widgets[key] = (
    <>
      {widgets[key]}
      {element}
    </>
  );
}

/** The line on which a comment is being written, and where that line is by now. */
function useOpenBox(hunks: HunkData[]) {
  const [open, setOpen] = useState<Anchor | null>(null);
  // Kept while the box moves to another line.
  const caret = useRef<Caret | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const now = open && findAnchor(hunks, open);
  const openAt = (place: Place) => {
    // The draft belongs to the number of the line on which it was opened. Now, that may be another line.
    const has_moved = open !== null && now?.line !== open.line;
    if (has_moved && field.current?.value.trim()) return field.current.focus();
    caret.current = 'end';
    setOpen(anchorAt(hunks, place));
  };
  return { open, now, openAt, close: () => setOpen(null), caret, field };
}

/** What the box of a comment says if the agent has changed the file since it was opened. */
function noteOnMove(open: Anchor, now: Place | null): string | null {
  if (now === null) {
    // A draft from before: its line is not known.
    if (open.lines.length === 0) return 'This line is not shown in the diff.';
    const text = open.lines.at(-1)?.text.trim();
    return `The file has changed. This line is no longer part of the diff${text ? `: ${escapeHidden(text)}` : '.'}`;
  }
  return now.line === open.line ? null : `The file has changed. Line ${open.line} is now line ${now.line}.`;
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
