/** The lines of a diff: colored by syntax, with the changed parts of each line marked. */
import 'react-diff-view/style/index.css';
import './diff.css';
import type { Hunk as HunkData } from 'gitdiff-parser';
import { Fragment, type ReactNode } from 'react';
import { Decoration, Diff, Hunk, type RenderGutter } from 'react-diff-view';
import { useTokens } from './tokens.ts';

export interface DiffTableProps {
  path: string;
  /** Must be the same array while its lines are the same. */
  hunks: HunkData[];
  /** What happened to the file. A file that was added or deleted has one column of line numbers. */
  type: 'add' | 'delete' | 'modify';
  view?: 'unified' | 'split';
  /** Shown below a line, by its change key. */
  widgets?: Record<string, ReactNode>;
  renderGutter?: RenderGutter;
  /** What is shown in the heading of a hunk, by its index, and below the last one. */
  renderMore?: (at: number) => ReactNode;
}

const no_widgets = {};

export default function DiffTable({
  path,
  hunks,
  type,
  view = 'unified',
  widgets = no_widgets,
  renderGutter,
  renderMore,
}: DiffTableProps) {
  const tokens = useTokens(path, hunks);
  const end = renderMore?.(hunks.length);
  return (
    <Diff
      viewType={view}
      diffType={type}
      hunks={hunks}
      widgets={widgets}
      tokens={tokens}
      optimizeSelection={view === 'split'}
      {...(renderGutter && { renderGutter, className: 'has-buttons' })}
    >
      {(all) => [
        ...all.map((hunk, at) => (
          <Fragment key={hunk.content}>
            <Decoration>
              <div className="flex items-center gap-2 bg-surface px-2">
                <p className="min-w-0 truncate font-mono text-muted text-sm leading-5">{hunk.content}</p>
                {renderMore?.(at)}
              </div>
            </Decoration>
            <Hunk hunk={hunk} />
          </Fragment>
        )),
        ...(end
          ? [
              <Decoration key="end">
                <div className="bg-surface px-2">{end}</div>
              </Decoration>,
            ]
          : []),
      ]}
    </Diff>
  );
}
