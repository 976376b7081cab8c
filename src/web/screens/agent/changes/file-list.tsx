/** The changed files as a tree, which scrolls to their diffs. */
import { Check, ChevronDown, ChevronRight, MessageSquare } from 'lucide-react';
import { useMemo, useState } from 'react';
import { escapeHidden } from '../../../../core/visible.ts';
import { cx } from '../../../ui/cx.ts';
import type { Comment } from './comments.ts';
import { Counts } from './counts.tsx';
import type { ChangedFile } from './parsed.ts';
import type { useViewed } from './stored.ts';
import { buildTree, countFiles, type Folder, isFolder } from './tree.ts';

export interface FileListProps {
  files: readonly ChangedFile[];
  truncated: boolean;
  chosen: string | undefined;
  viewed: ReturnType<typeof useViewed>;
  comments: readonly Comment[];
  onOpen: (path: string) => void;
  className: string;
}

export function FileList({ files, truncated, chosen, viewed, comments, onOpen, className }: FileListProps) {
  const tree = useMemo(() => buildTree(files), [files]);
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const show = (nodes: (Folder | ChangedFile)[], depth: number) =>
    nodes.map((node) =>
      isFolder(node) ? (
        <li key={`${node.path}/`}>
          <FolderRow
            folder={node}
            depth={depth}
            is_open={!closed.has(node.path)}
            onToggle={() => setClosed(toggled(closed, node.path))}
          />
          {!closed.has(node.path) && <ul>{show(node.children, depth + 1)}</ul>}
        </li>
      ) : (
        <File
          key={node.path}
          file={node}
          depth={depth}
          is_chosen={node.path === chosen}
          is_viewed={viewed.is(node)}
          comments={comments.filter(({ path }) => path === node.path).length}
          onOpen={() => onOpen(node.path)}
        />
      ),
    );
  return (
    <nav aria-label="Changed files" className={cx('scroll-y shrink-0 border-line md:border-r', className)}>
      <ul className="py-1">{show(tree, 0)}</ul>
      {truncated && <p className="px-3 py-2 text-muted">Not all changed files are listed.</p>}
    </nav>
  );
}

function toggled(set: ReadonlySet<string>, one: string): Set<string> {
  const next = new Set(set);
  if (!next.delete(one)) next.add(one);
  return next;
}

/** The indentation by depth; deeper folders have the last one. */
const INDENT = ['', 'ml-3', 'ml-6', 'ml-9', 'ml-12'];
const indentClass = (depth: number) => INDENT[Math.min(depth, INDENT.length - 1)]!;

interface FolderRowProps {
  folder: Folder;
  depth: number;
  is_open: boolean;
  onToggle: () => void;
}

function FolderRow({ folder, depth, is_open, onToggle }: FolderRowProps) {
  const Chevron = is_open ? ChevronDown : ChevronRight;
  return (
    <button
      type="button"
      aria-expanded={is_open}
      title={escapeHidden(folder.path)}
      onClick={onToggle}
      className="tap flex w-full items-center pr-3 pl-2 text-left text-muted text-sm hover:text-text"
    >
      <span className={cx('flex min-w-0 flex-1 items-center gap-1', indentClass(depth))}>
        <Chevron aria-hidden className="size-3.5 shrink-0" />
        <span className="truncate">{escapeHidden(folder.name)}</span>
      </span>
      {!is_open && <span>{countFiles(folder)}</span>}
    </button>
  );
}

interface FileProps {
  file: ChangedFile;
  depth: number;
  is_chosen: boolean;
  is_viewed: boolean;
  comments: number;
  onOpen: () => void;
}

function File({ file, depth, is_chosen, is_viewed, comments, onOpen }: FileProps) {
  const { path, from, status, additions, deletions } = file;
  const name = escapeHidden(path.slice(path.lastIndexOf('/') + 1));
  return (
    <li className="[contain-intrinsic-size:auto_28px] [content-visibility:auto]">
      <button
        type="button"
        onClick={onOpen}
        aria-current={is_chosen || undefined}
        title={escapeHidden(from === null ? path : `${from} → ${path}`)}
        className={cx(
          'tap flex w-full min-w-0 items-center gap-2 pr-3 pl-2 text-left hover:bg-surface',
          is_chosen && 'md:bg-surface',
        )}
      >
        <span className={cx('flex min-w-0 flex-1 items-center gap-1', indentClass(depth))}>
          <Check
            aria-hidden
            className={cx('size-3.5 shrink-0', is_viewed ? 'text-completed' : 'invisible')}
          />
          <span className={cx('truncate', is_viewed && 'text-muted')}>{name}</span>
          <span className="sr-only">
            {` ${status.replaceAll('_', ' ')}${from === null ? '' : ` from ${escapeHidden(from)}`}${is_viewed ? ', viewed' : ''}`}
          </span>
        </span>
        {comments > 0 && (
          <span className="inline-flex items-center gap-1 text-muted text-sm">
            <MessageSquare aria-hidden className="size-3.5" />
            {comments}
            <span className="sr-only"> comments</span>
          </span>
        )}
        <span className="text-sm">
          <Counts additions={additions} deletions={deletions} />
        </span>
        <span
          aria-hidden
          title={status}
          className={cx('w-3 text-center font-mono text-sm', letters[status].color)}
        >
          {letters[status].letter}
        </span>
      </button>
    </li>
  );
}

const letters: Record<ChangedFile['status'], { letter: string; color: string }> = {
  added: { letter: 'A', color: 'text-completed' },
  untracked: { letter: '?', color: 'text-completed' },
  modified: { letter: 'M', color: 'text-warning' },
  type_changed: { letter: 'T', color: 'text-warning' },
  renamed: { letter: 'R', color: 'text-running' },
  copied: { letter: 'C', color: 'text-running' },
  deleted: { letter: 'D', color: 'text-failed' },
  conflicted: { letter: '!', color: 'text-failed' },
};
