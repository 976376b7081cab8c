/** The lines of a diff: colored by syntax, with the changed parts of each line marked. */
import 'react-diff-view/style/index.css';
import './diff.css';
import type { Hunk as HunkData } from 'gitdiff-parser';
import { Fragment, type ReactNode, useMemo } from 'react';
import { Decoration, Diff, Hunk, type RenderGutter } from 'react-diff-view';
import { cx } from '../ui/cx.ts';
import { useNarrow } from '../ui/media.ts';
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

const renderNumber: RenderGutter = ({ renderDefault }) => renderDefault();

/** One column of line numbers, for phones: the new number of a line, or the old one of a removed line. */
function inOneColumn(render: RenderGutter): RenderGutter {
  return (options) => {
    const { change, side } = options;
    if (side === 'old') return null;
    if (change.type !== 'delete') return render(options);
    return render({ ...options, side: 'old', renderDefault: () => change.lineNumber });
  };
}

export default function DiffTable({
  path,
  hunks,
  type,
  view = 'unified',
  widgets = no_widgets,
  renderGutter = renderNumber,
  renderMore,
}: DiffTableProps) {
  const tokens = useTokens(path, hunks);
  const has_one_column = useNarrow() && view === 'unified';
  const render = useMemo(
    () => (has_one_column ? inOneColumn(renderGutter) : renderGutter),
    [has_one_column, renderGutter],
  );
  const end = renderMore?.(hunks.length);
  return (
    <Diff
      viewType={view}
      diffType={type}
      hunks={hunks}
      widgets={widgets}
      tokens={tokens}
      optimizeSelection={view === 'split'}
      renderGutter={render}
      className={cx(renderGutter !== renderNumber && 'has-buttons', has_one_column && 'has-one-column')}
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
