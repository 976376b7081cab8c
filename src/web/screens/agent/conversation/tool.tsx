/** A tool call: one line of its group, folded unless the call runs or failed. */
import { Link } from '@tanstack/react-router';
import {
  ArrowLeftRight,
  Brain,
  ChevronRight,
  FileText,
  Globe,
  LoaderCircle,
  type LucideIcon,
  Pencil,
  Search,
  SquareTerminal,
  Trash2,
  Wrench,
} from 'lucide-react';
import { type ReactNode, type Ref, useId, useState } from 'react';
import type { Call, CallContent, Diff, Terminal } from '../../../../acp/transcript/calls.ts';
import type { Tool, ToolStatus } from '../../../../acp/transcript/items.ts';
import { escapeHidden } from '../../../../core/visible.ts';
import { CodeBlock } from '../../../prose/code.tsx';
import { Counts, DiffView } from '../../../reviews/diff-view.tsx';
import { pathInFolder, relativePath } from '../../../reviews/paths.ts';
import { RawView } from '../../../reviews/raw-view.tsx';
import { findCommand } from '../../../reviews/review-view.ts';
import { table } from '../../../table.ts';
import { plainText } from '../../../transcript/ansi.ts';
import { cx } from '../../../ui/cx.ts';
import { Status } from '../../../ui/status.tsx';
import { Truncated } from '../../../ui/truncated.tsx';
import { PartView } from './body.tsx';
import { Elapsed } from './elapsed.tsx';
import { PermissionNote, UnsentReply, useFocusAfterCard } from './permission-note.tsx';
import type { ToolRow } from './rows.ts';

const icons = table<LucideIcon>({
  read: FileText,
  edit: Pencil,
  delete: Trash2,
  move: ArrowLeftRight,
  search: Search,
  execute: SquareTerminal,
  think: Brain,
  fetch: Globe,
});

export interface Folder {
  agent_id: string;
  /** Paths below it are shown without it. */
  workdir: string;
}

export function ToolLine({ row, folder }: { row: ToolRow; folder: Folder }) {
  const { item, permissions } = row;
  const { call, status } = item;
  const [user_choice, setUserChoice] = useState<boolean | null>(null);
  const open = user_choice ?? ((status === 'in_progress' || status === 'failed') && hasOutput(call));
  const button = useFocusAfterCard(permissions);
  const title = escapeHidden(call.title);
  const line = (
    <Folded
      ref={button}
      open={open}
      onToggle={() => setUserChoice(!open)}
      icon={icons[call.tool_kind] ?? Wrench}
      kind={call.tool_kind}
      title={title}
      hint={placeHint(title, call, folder)}
      facts={
        <>
          {permissions.map((item) => (
            <PermissionNote key={item.key} item={item} />
          ))}
          <Counts added={item.added} removed={item.removed} />
          <ToolState status={status} />
          {(status === 'in_progress' || item.ended_ts !== null) && (
            <span className="min-w-12 text-right text-muted tabular-nums">
              <Elapsed from={item.ts} to={item.ended_ts} />
            </span>
          )}
        </>
      }
    >
      <ToolBody item={item} folder={folder} />
    </Folded>
  );
  return (
    <>
      {line}
      {permissions.map((item) => (
        <UnsentReply key={item.key} item={item} agent_id={folder.agent_id} />
      ))}
    </>
  );
}

/** The file of a call, unless its title has it already. */
function placeHint(title: string, { locations }: Call, { workdir }: Folder): string | null {
  const [place] = locations;
  const path = place && relativePath(place.path, workdir);
  return path === undefined || title.includes(path) ? null : path;
}

/** Success is the default and needs no word on the screen. */
function ToolState({ status }: { status: ToolStatus }) {
  if (status === 'completed') return <span className="sr-only">completed</span>;
  if (status !== 'in_progress') return <Status status={status} className="text-sm" />;
  return (
    <>
      <LoaderCircle aria-hidden className="size-3.5 animate-spin text-running" />
      <span className="sr-only">in progress</span>
    </>
  );
}

/** Consecutive reads. */
export function ReadsLine({ reads, folder }: { reads: readonly Tool[]; folder: Folder }) {
  const [open, setOpen] = useState(false);
  return (
    <Folded
      open={open}
      onToggle={() => setOpen(!open)}
      icon={FileText}
      kind="read"
      title={`Read ${reads.length} files`}
      hint={null}
      facts={<ToolState status="completed" />}
    >
      {reads.map((item) => (
        <ToolLine
          key={item.key}
          row={{ type: 'tool', key: item.key, item, permissions: [] }}
          folder={folder}
        />
      ))}
    </Folded>
  );
}

function Folded({
  ref,
  open,
  onToggle,
  icon: Icon,
  kind,
  title,
  facts,
  hint,
  children,
}: {
  ref?: Ref<HTMLButtonElement>;
  open: boolean;
  onToggle: () => void;
  icon: LucideIcon;
  kind: string;
  title: string;
  facts: ReactNode;
  hint: string | null;
  children: ReactNode;
}) {
  const id = useId();
  return (
    <div className="min-w-0">
      <button
        ref={ref}
        type="button"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={onToggle}
        className="tap flex w-full min-w-0 items-center gap-2 px-2 text-left hover:bg-surface focus-visible:-outline-offset-2"
      >
        <Icon aria-hidden className="size-3.5 shrink-0 text-muted" />
        <span className="sr-only">{kind} </span>
        <Truncated className="min-w-0 flex-1" title={title}>
          {title.split('\n')[0]}
          {hint !== null && <bdi className="font-mono text-muted text-sm"> {hint}</bdi>}
        </Truncated>
        <span className="inline-flex min-w-0 shrink-0 items-center gap-x-2 text-sm">{facts}</span>
        <ChevronRight aria-hidden className={cx('size-3.5 shrink-0 text-muted', open && 'rotate-90')} />
      </button>
      {open && (
        <div id={id} className="flex min-w-0 flex-col gap-1.5 border-line border-t p-2 pl-7.5 max-md:pl-2">
          {children}
        </div>
      )}
    </div>
  );
}

/** Whether there is more to see than its line shows. */
function hasOutput({ content, raw_output }: Call): boolean {
  return content.length > 0 || raw_output !== null;
}

function ToolBody({ item, folder }: { item: Tool; folder: Folder }) {
  const { call } = item;
  const command = findCommand(call);
  const is_below = call.content.some((item) => item.type === 'terminal' && item.command === command);
  return (
    <>
      {command !== null && !is_below && (
        <p className="break-words font-mono text-sm">{escapeHidden(command)}</p>
      )}
      {call.locations.length > 0 && (
        <ul className="font-mono text-muted text-sm">
          {call.locations.map(({ path, line }) => (
            <li key={`${path}:${line}`} className="break-all">
              {relativePath(path, folder.workdir)}
              {line !== null && `:${line}`}
            </li>
          ))}
        </ul>
      )}
      {call.content.map((content, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: contents have no other name
        <Content key={at} content={content} folder={folder} done={item.status === 'completed'} />
      ))}
      {call.content_cut > 0 && <p className="text-muted">{call.content_cut} more not shown.</p>}
      {call.raw_input && (
        <RawView label="Input" value={call.raw_input.value} truncated={call.raw_input.truncated} />
      )}
      {call.raw_output && (
        <RawView label="Output" value={call.raw_output.value} truncated={call.raw_output.truncated} />
      )}
    </>
  );
}

/** `done`: the change has been applied in the folder. */
function Content({ content, folder, done }: { content: CallContent; folder: Folder; done: boolean }) {
  switch (content.type) {
    case 'content':
      return <PartView part={content.part} />;
    case 'diff':
      return (
        <DiffView
          diff={content}
          workdir={folder.workdir}
          elsewhere={done && <InChanges diff={content} folder={folder} />}
        />
      );
    case 'terminal':
      return <TerminalView terminal={content} />;
    case 'unknown':
      return (
        <RawView label="Unrecognized content" value={content.raw.value} truncated={content.raw.truncated} />
      );
  }
}

function TerminalView({ terminal }: { terminal: Terminal }) {
  const { terminal_id, command, text, omitted_chars, exit } = terminal;
  const printed = text.split(/\r?\n/).map(plainText).join('\n').trimEnd();
  return (
    <>
      {command !== null && <p className="break-words font-mono text-sm">{escapeHidden(command)}</p>}
      {omitted_chars > 0 && <p className="text-muted">{omitted_chars} earlier characters not shown.</p>}
      {printed !== '' && <CodeBlock text={printed} language="terminal" />}
      {exit !== null && <p className="text-muted">{escapeHidden(exit)}</p>}
      {command === null && text === '' && (
        <p className="text-muted">in the agent's own terminal {terminal_id}</p>
      )}
    </>
  );
}

function InChanges({ diff, folder }: { diff: Diff; folder: Folder }) {
  return (
    <Link
      to="/agents/$agent_id/$tab"
      params={{ agent_id: folder.agent_id, tab: 'changes' }}
      search={{ file: pathInFolder(diff.path, folder.workdir) }}
      className="underline"
    >
      Open in Changes
    </Link>
  );
}
