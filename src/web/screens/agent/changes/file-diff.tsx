/** The diff of a file, or why it is not shown. */
import { useQuery } from '@tanstack/react-query';
import type { Hunk } from 'gitdiff-parser';
import { Download } from 'lucide-react';
import { memo, type RefObject, useMemo, useState } from 'react';
import { Problem } from '../../../../core/problem.ts';
import { escapeHidden } from '../../../../core/visible.ts';
import { type AgentRecord, changeQuery } from '../../../api/queries.ts';
import { Button } from '../../../ui/button.tsx';
import { save } from '../../../ui/save.ts';
import { QueryState, Skeleton } from '../../../ui/states.tsx';
import type { Comment } from './comments.ts';
import { CONTEXTS } from './context.ts';
import { Counts } from './counts.tsx';
import { Hunks } from './hunks.tsx';
import { describeMode, type FileChange, type Parsed, parsed } from './parsed.ts';
import type { ChangeComments } from './stored.ts';
import type { View } from './use-diff-view.ts';

export interface FileDiffProps {
  agent: AgentRecord;
  path: string;
  view: View;
  scroller: RefObject<HTMLElement | null>;
  /** It is read, and read again when it changes, only while it is near the screen. */
  is_near: boolean;
  /** Its height until it is read. */
  estimate_px: number;
  comments: readonly Comment[];
  onComments: ChangeComments;
}

/** Rendered again only when its own properties change, because tables of many lines take long. */
export const FileDiff = memo(function FileDiff(props: FileDiffProps) {
  const { agent, path, is_near, estimate_px } = props;
  const [step, setStep] = useState(0);
  const [last_step, setLastStep] = useState(CONTEXTS.length - 1);
  const context = CONTEXTS[step]!;
  const read = useQuery({
    ...changeQuery(agent.id, path, context),
    enabled: is_near,
    staleTime: 0,
    refetchOnWindowFocus: true,
    // The lines stay until there are more of them.
    placeholderData: (before) => before,
  });
  const shown = useMemo(() => read.data && parsed(read.data), [read.data]);
  if (shown?.type === 'large' && step > 0 && !read.isPlaceholderData) {
    setStep(step - 1);
    setLastStep(step - 1);
  }
  if (read.data === undefined && !read.error) {
    return (
      <div data-unread style={{ height: estimate_px }}>
        {is_near && <Skeleton />}
      </div>
    );
  }
  const more = step < last_step ? () => setStep(step + 1) : null;
  const is_gone = read.error instanceof Problem && read.error.code === 'file_not_found';
  return (
    <>
      {is_gone ? (
        <p className="px-3 py-2 text-muted">This file no longer has changes.</p>
      ) : (
        <QueryState read={read}>{(change) => <Note change={change} shown={shown!} />}</QueryState>
      )}
      {/* Also without lines, because it has the comments of the file and the one that is being written. */}
      <Hunks
        {...props}
        agent_id={agent.id}
        hunks={!is_gone && shown?.type === 'hunks' ? shown.hunks : NO_HUNKS}
        status={read.data?.status ?? 'modified'}
        // While more lines are read, the shown ones still have the context of the step before.
        context={read.isPlaceholderData ? CONTEXTS[step - 1]! : context}
        onMore={read.isPlaceholderData ? () => {} : more}
      />
    </>
  );
});

const NO_HUNKS: Hunk[] = [];

/** What to know about the file besides its lines, or why they are not shown. */
function Note({ change, shown }: { change: FileChange; shown: Parsed }) {
  const mode = describeMode(change.diff);
  return (
    <>
      {change.from !== null && (
        <p className="border-line border-b px-3 py-1 text-muted">
          {change.status === 'copied' ? 'Copied' : 'Renamed'} from{' '}
          <code className="break-all">{escapeHidden(change.from)}</code>
        </p>
      )}
      {mode && <p className="border-line border-b px-3 py-1 text-muted">{mode}</p>}
      {shown.type !== 'hunks' && <NoLines type={shown.type} change={change} />}
    </>
  );
}

const why_not = {
  binary: 'This is a binary file.',
  same: 'No lines in this file have changed.',
  large: 'This diff is too large to show. Download it to see all of it.',
};

function NoLines({ type, change }: { type: keyof typeof why_not; change: FileChange }) {
  const { path, additions, deletions, diff, truncated, status } = change;
  const is_empty = type === 'same' && (status === 'added' || status === 'untracked');
  const name = `${path.slice(path.lastIndexOf('/') + 1)}.diff`;
  return (
    <div className="flex flex-col items-center gap-3 px-4 py-6 text-center">
      <p className="text-prose">{is_empty ? 'This file is empty.' : why_not[type]}</p>
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
