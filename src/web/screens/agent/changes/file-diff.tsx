/** The lines of one file that differ. A line's number opens a comment on it. */
import 'react-diff-view/style/index.css';
import './diff.css';
import { useQuery } from '@tanstack/react-query';
import type { Hunk as HunkData } from 'gitdiff-parser';
import { ArrowLeft, Download } from 'lucide-react';
import { Fragment, type ReactNode, useMemo, useState } from 'react';
import { Decoration, Diff, getChangeKey, Hunk, type RenderGutter } from 'react-diff-view';
import { type AgentRecord, changeQuery } from '../../../api/queries.ts';
import { Button } from '../../../ui/button.tsx';
import { Reading } from '../../../ui/states.tsx';
import { save } from '../output/save.ts';
import { CommentBox, SaidComment } from './comment-box.tsx';
import { type Comment, isAt, withComment } from './comments.ts';
import { Counts } from './counts.tsx';
import type { View } from './look.ts';
import {
  type ChangedFile,
  changeAt,
  type FileChange,
  type Place,
  paired,
  parsed,
  placeOf,
} from './parsed.ts';
import { useTokens } from './tokens.ts';

export interface FileDiffProps {
  agent: AgentRecord;
  path: string;
  /** As the list of files has it; none where it is changed no more. */
  listed: ChangedFile | undefined;
  view: View;
  comments: readonly Comment[];
  onComments: (list: readonly Comment[]) => void;
  /** To the list, where it is not beside. */
  onBack: () => void;
}

export function FileDiff(props: FileDiffProps) {
  const { agent, path, listed, onBack } = props;
  const read = useQuery({ ...changeQuery(agent.id, path), staleTime: 0, refetchOnWindowFocus: true });
  return (
    <article aria-label={path} className="flex min-h-full flex-col">
      <header className="sticky top-0 z-10 flex min-h-10 items-center gap-3 border-line border-b bg-ground px-3">
        <Button look="quiet" className="md:hidden" icon={<ArrowLeft aria-hidden />} onClick={onBack}>
          Files
        </Button>
        <h2 className="min-w-0 flex-1 truncate font-mono text-sm" title={path} dir="auto">
          {path}
        </h2>
        {listed && <Counts additions={listed.additions} deletions={listed.deletions} />}
      </header>
      <Reading read={read}>{(change) => <Lines {...props} change={change} />}</Reading>
    </article>
  );
}

function Lines({ change, ...props }: FileDiffProps & { change: FileChange }) {
  const shown = useMemo(() => parsed(change), [change]);
  const moved = change.from !== null && (
    <p className="border-line border-b px-3 py-1 text-muted">
      {change.status === 'copied' ? 'Copied' : 'Renamed'} from{' '}
      <code className="break-all">{change.from}</code>
    </p>
  );
  return (
    <>
      {moved}
      {shown.type === 'hunks' ? (
        <Hunks {...props} hunks={shown.hunks} lines={shown.lines} status={change.status} />
      ) : (
        <NoLines type={shown.type} change={change} />
      )}
    </>
  );
}

const why_not = {
  binary: 'This file is no text.',
  same: 'No line of this file differs.',
  large: 'There is too much of it to be shown here.',
};

function NoLines({ type, change }: { type: keyof typeof why_not; change: FileChange }) {
  const { path, additions, deletions, diff, truncated } = change;
  const name = `${path.slice(path.lastIndexOf('/') + 1)}.diff`;
  return (
    <div className="flex flex-col items-center gap-3 px-4 py-14 text-center">
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

type HunksProps = FileDiffProps & { hunks: HunkData[]; lines: number; status: FileChange['status'] };

function Hunks({ agent, path, view, comments, onComments, hunks: plain, lines, status }: HunksProps) {
  const hunks = useMemo(() => (view === 'split' ? paired(plain) : plain), [plain, view]);
  const [open, setOpen] = useState<Place | null>(null);
  const mine = comments.filter((comment) => comment.path === path);
  const put = (place: Place, code: string, text: string) => {
    onComments(withComment(comments, { ...place, path, code, text }));
    setOpen(null);
  };
  const tokens = useTokens(path, hunks, lines);
  const widgets: Record<string, ReactNode> = {};
  for (const place of [...mine, ...(open ? [open] : [])]) {
    const change = changeAt(hunks, place);
    if (!change) continue;
    const said = mine.find((comment) => isAt(comment, path, place));
    const is_open = open !== null && open.side === place.side && open.line === place.line;
    widgets[getChangeKey(change)] = is_open ? (
      <CommentBox
        name={`${agent.id}.${path}.${place.side}${place.line}`}
        line={place.line}
        before={said?.text ?? ''}
        onDone={(text) => put(place, change.content, text)}
        onCancel={() => setOpen(null)}
      />
    ) : (
      said && (
        <SaidComment
          comment={said}
          onEdit={() => setOpen(place)}
          onDelete={() => put(place, change.content, '')}
        />
      )
    );
  }
  const lost = mine.filter((comment) => !changeAt(hunks, comment));
  const renderGutter: RenderGutter = ({ change, side, renderDefault }) => {
    const place = placeOf(change);
    if (place.side !== side) return renderDefault();
    const removed = side === 'old' ? 'removed ' : '';
    return (
      <button
        type="button"
        aria-label={`Comment on ${removed}line ${place.line}`}
        title="Comment"
        onClick={() => setOpen(place)}
        className="block min-h-6 w-full text-right hover:underline"
      >
        {place.line}
      </button>
    );
  };
  return (
    <>
      {lost.map((comment) => (
        <SaidComment
          key={`${comment.side}${comment.line}`}
          comment={comment}
          note={`on line ${comment.line}, which is not among the changes any more`}
          onDelete={() => onComments(withComment(comments, { ...comment, text: '' }))}
        />
      ))}
      <Diff
        viewType={view}
        diffType={typeOf(status)}
        hunks={hunks}
        widgets={widgets}
        tokens={tokens}
        renderGutter={renderGutter}
        optimizeSelection={view === 'split'}
      >
        {(all) =>
          all.map((hunk) => (
            <Fragment key={hunk.content}>
              <Decoration>
                <p className="bg-surface px-3 py-1 font-mono text-muted text-sm">{hunk.content}</p>
              </Decoration>
              <Hunk hunk={hunk} />
            </Fragment>
          ))
        }
      </Diff>
    </>
  );
}

function typeOf(status: FileChange['status']): 'add' | 'delete' | 'modify' {
  if (status === 'added' || status === 'untracked') return 'add';
  return status === 'deleted' ? 'delete' : 'modify';
}
