/** An open task: its status and actions, its thread, and the form for a new message. */
import { Link } from '@tanstack/react-router';
import { Pencil, Search, X } from 'lucide-react';
import { useState } from 'react';
import type { TeamRecord } from '../../api/queries.ts';
import { Button, buttonClass, IconButton } from '../../ui/button.tsx';
import { Disclosure } from '../../ui/disclosure.tsx';
import { FilterField } from '../../ui/filter-field.tsx';
import { Select } from '../../ui/select.tsx';
import { SidePanel } from '../../ui/side-panel.tsx';
import { ActionError, Failed, Skeleton } from '../../ui/states.tsx';
import { linkLabels, linkNames } from '../../waiting/queue.ts';
import { TaskFacts } from './card.tsx';
import { columns, type TaskStatus } from './columns.ts';
import { Composer } from './composer.tsx';
import type { TaskRecord } from './data.ts';
import { isRunOpen, useStartRun, useThread } from './data.ts';
import type { TasksSearch } from './feature.ts';
import { Messages } from './messages.tsx';
import type { Refusal, ShownTask } from './shown.ts';
import type { MessageRecord } from './thread.ts';

const SEARCH_AFTER_MS = 250;

export function Conversation({
  shown,
  team,
  search,
  change,
  refusal,
  onMove,
  onEdit,
  onClose,
}: {
  shown: ShownTask;
  team: TeamRecord;
  search: TasksSearch;
  change: (next: TasksSearch) => void;
  refusal: Refusal | null;
  onMove: (task: TaskRecord, status: TaskStatus) => void;
  onEdit: (task: TaskRecord) => void;
  onClose: () => void;
}) {
  const { task } = shown;
  const { q, thread } = search;
  const { read, messages, add } = useThread(task, { q, thread });
  const [answered, setAnswered] = useState<MessageRecord | null>(null);
  return (
    <SidePanel
      title={`${task.key} ${task.title}`}
      back="tasks"
      is_thread
      actions={<IconButton label="Edit task" icon={<Pencil aria-hidden />} onClick={() => onEdit(task)} />}
      onClose={onClose}
    >
      <div className="flex shrink-0 flex-col gap-1 border-line border-b px-3 py-2">
        <div className="flex min-w-0 flex-wrap items-center gap-2 text-muted text-sm">
          <span className="w-32">
            <Select
              aria-label="Status"
              value={task.status}
              onChange={(status) => onMove(task, status as TaskStatus)}
              choices={columns.map(({ status, label }) => ({ value: status, label }))}
            />
          </span>
          <TaskFacts shown={shown} />
          <span className="ml-auto">
            <TaskRun shown={shown} />
          </span>
        </div>
        {refusal && (
          <p role="alert" className="text-failed text-sm">
            {refusal.message}
          </p>
        )}
        {task.description !== '' && (
          <Disclosure summary="Description">
            <p dir="auto" className="max-h-48 overflow-y-auto whitespace-pre-wrap break-words text-prose">
              {task.description}
            </p>
          </Disclosure>
        )}
        <div className="flex items-center gap-2">
          <SearchBox q={q} onSearch={(next) => change({ q: next })} />
          {thread !== undefined && (
            <Button icon={<X aria-hidden />} onClick={() => change({ thread: undefined })}>
              Show all messages
            </Button>
          )}
        </div>
      </div>
      {read.data ? (
        <Messages
          // Each search starts with a new scroll position.
          key={`${q ?? ''} ${thread ?? ''}`}
          task={task}
          messages={messages}
          is_searched={q !== undefined || thread !== undefined}
          has_older={read.hasNextPage}
          is_reading={read.isFetchingNextPage}
          onOlder={() => void read.fetchNextPage()}
          onAnswer={setAnswered}
          onThread={(id) => change({ thread: id, q: undefined })}
        />
      ) : (
        <div className="flex-1">
          {read.error ? (
            <Failed error={read.error} retry={() => void read.refetch()} />
          ) : (
            <Skeleton rows={5} height="h-12" />
          )}
        </div>
      )}
      <Composer
        task={task}
        team={team}
        answered={answered}
        onAnswer={setAnswered}
        onSent={(message) => {
          add([message]);
          setAnswered(null);
        }}
      />
    </SidePanel>
  );
}

/** Its run, and a link to the request in it that has waited longest. */
function TaskRun({ shown: { task, run, waiting } }: { shown: ShownTask }) {
  const start = useStartRun(task);
  const { team_id, run_id } = task;
  const [first] = waiting;
  return (
    <span className="inline-flex flex-wrap items-center gap-2">
      <ActionError error={start.error} />
      {first && (
        <Link
          to="/approvals"
          search={{ [linkNames[first.kind]]: first.id }}
          className={buttonClass('primary')}
        >
          {linkLabels[first.kind]}
        </Link>
      )}
      {run_id !== null && (
        <Link
          to="/teams/$team_id/runs/$run_id"
          params={{ team_id, run_id }}
          search={{}}
          className={buttonClass()}
        >
          {run ? `Open run ${run.number}` : 'Open run'}
        </Link>
      )}
      {(run_id === null || (run && !isRunOpen(run))) && (
        <Button busy={start.isPending} onClick={() => start.mutate()}>
          {start.isPending ? 'Starting…' : 'Start run'}
        </Button>
      )}
    </span>
  );
}

/** Searches after the user pauses typing. */
function SearchBox({ q, onSearch }: { q: string | undefined; onSearch: (q: string | undefined) => void }) {
  return (
    <div className="relative min-w-0 flex-1">
      <Search aria-hidden className="absolute top-1/2 left-2 size-3.5 -translate-y-1/2 text-muted" />
      <FilterField
        label="Search this thread"
        value={q ?? ''}
        onText={(text) => onSearch(text || undefined)}
        after_ms={SEARCH_AFTER_MS}
        className="pl-7"
      />
    </div>
  );
}
