/** The tasks of teams, as a board or a list, and one open task. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { Columns3, List, Plus } from 'lucide-react';
import { useEffect, useMemo, useRef, useState } from 'react';
import { errorMessage } from '../../api/client.ts';
import { type TeamRecord, teamsQuery } from '../../api/queries.ts';
import { NO_ROW_KEYS } from '../../shell/list-keys.ts';
import { Button, buttonClass, floatingClass, IconButton } from '../../ui/button.tsx';
import { FilterField } from '../../ui/filter-field.tsx';
import { Screen } from '../../ui/screen.tsx';
import { Select } from '../../ui/select.tsx';
import { BesidePanel, SidePanel } from '../../ui/side-panel.tsx';
import { Empty, QueryState } from '../../ui/states.tsx';
import { useWaiting } from '../../waiting/use-waiting.ts';
import { Board } from './board.tsx';
import { columnLabel, matching, type TaskStatus } from './columns.ts';
import { Conversation } from './conversation.tsx';
import type { TaskRecord } from './data.ts';
import { useMove, useMoving, useTaskRuns, useTeamTasks } from './data.ts';
import { EditTask, NewTask } from './edit.tsx';
import type { TasksSearch } from './feature.ts';
import { TaskList } from './list.tsx';
import { membersAtWork, type Refusal, type ShownTask } from './shown.ts';

export function Tasks() {
  const search = useSearch({ from: '/app/tasks' });
  const navigate = useNavigate({ from: '/tasks' });
  const teams = useQuery(teamsQuery);
  const [dialog, setDialog] = useState<'new' | TaskRecord | null>(null);
  const change = (next: TasksSearch, replace = true) => {
    void navigate({ search: (old) => ({ ...old, ...next }), replace });
  };
  const all = teams.data ?? [];
  const chosen = search.team === undefined ? all : all.filter(({ id }) => id === search.team);
  const open = search.task !== undefined;
  const list = search.view === 'list';
  const edited = dialog !== null && dialog !== 'new' ? dialog : null;
  const team_of_edited = all.find(({ id }) => id === edited?.team_id);
  return (
    <Screen
      title="Tasks"
      rowKeys={NO_ROW_KEYS}
      primary={
        all.length > 0 && (
          <button type="button" onClick={() => setDialog('new')} className={floatingClass}>
            <Plus aria-hidden /> <span className="max-md:sr-only">New task</span>
          </button>
        )
      }
      toolbar={
        all.length > 0 && (
          <div className="flex min-w-0 flex-1 flex-wrap items-center gap-2">
            <span className="w-36 sm:w-44">
              <Select
                aria-label="Team"
                value={search.team ?? ''}
                onChange={(team) => change({ team: team || undefined, task: undefined, q: undefined })}
                choices={[
                  { value: '', label: 'All teams' },
                  ...all.map(({ id, name }) => ({ value: id, label: name })),
                ]}
              />
            </span>
            {!open && (
              <FilterField
                label="Filter tasks"
                placeholder="Filter"
                shows_key
                value={search.q ?? ''}
                onText={(text) => change({ q: text || undefined })}
                className="min-w-20 flex-1 basis-0 sm:max-w-56"
              />
            )}
            {!open && (
              <IconButton
                label={list ? 'Show board' : 'Show list'}
                icon={list ? <Columns3 aria-hidden /> : <List aria-hidden />}
                onClick={() => change({ view: list ? undefined : 'list' })}
              />
            )}
          </div>
        )
      }
    >
      <QueryState read={teams}>
        {(teams) =>
          teams.length === 0 ? (
            <Empty
              title="No teams yet. A task is work for a team, so create a team first."
              cli="svc teams create --file team.json"
              operation="createTeam"
            >
              <Link to="/teams/new" search={{}} className={buttonClass('primary')}>
                New team
              </Link>
            </Empty>
          ) : chosen.length === 0 ? (
            <Empty title="This team does not exist.">
              <Button onClick={() => change({ team: undefined, task: undefined })}>Show all teams</Button>
            </Empty>
          ) : (
            <TeamTasks
              // Another set of teams has other queries.
              key={search.team ?? ''}
              teams={chosen}
              search={search}
              change={change}
              onNew={() => setDialog('new')}
              onEdit={setDialog}
            />
          )
        }
      </QueryState>
      {dialog === 'new' && (
        <NewTask
          teams={all}
          team_id={search.team}
          onClose={() => setDialog(null)}
          onCreated={({ id, team_id }) => {
            setDialog(null);
            change(
              { task: id, ...(search.team && { team: team_id }), q: undefined, thread: undefined },
              false,
            );
          }}
        />
      )}
      {edited && team_of_edited && (
        <EditTask task={edited} team={team_of_edited} onClose={() => setDialog(null)} />
      )}
    </Screen>
  );
}

function TeamTasks({
  teams,
  search,
  change,
  onNew,
  onEdit,
}: {
  teams: readonly TeamRecord[];
  search: TasksSearch;
  change: (next: TasksSearch, replace?: boolean) => void;
  onNew: () => void;
  onEdit: (task: TaskRecord) => void;
}) {
  const read = useTeamTasks(teams);
  const runs = useTaskRuns(read.data ?? []);
  const { open: waiting } = useWaiting();
  const { moved, refusal, onMove } = useMoves();
  const moving = useMoving();
  const open_id = search.task;
  const is_list = search.view === 'list';
  const shown = useMemo(() => {
    const by_run = Map.groupBy(waiting, ({ run_id }) => run_id);
    const by_id = new Map(teams.map((team) => [team.id, team]));
    return (read.data ?? []).map((task): ShownTask => {
      const team = by_id.get(task.team_id);
      const run = task.run_id === null ? null : (runs.get(task.run_id) ?? null);
      return {
        task: { ...task, status: moving.get(task.id) ?? task.status },
        team_name: teams.length > 1 ? (team?.name ?? null) : null,
        run,
        members: team && run ? membersAtWork(team, run) : '',
        waiting: (task.run_id !== null && by_run.get(task.run_id)) || [],
      };
    });
  }, [read.data, teams, runs, waiting, moving]);
  const kept = useMemo(() => {
    if (open_id !== undefined || !search.q) return shown;
    const found = new Set(
      matching(
        shown.map(({ task }) => task),
        search.q,
      ).map(({ id }) => id),
    );
    return shown.filter(({ task }) => found.has(task.id));
  }, [shown, open_id, search.q]);
  const open = shown.find(({ task }) => task.id === open_id);
  const cards = { open_id, refusal, onMove, onEdit };
  const close = () => {
    const id = open_id;
    change({ task: undefined, q: undefined, thread: undefined }, false);
    requestAnimationFrame(() => focusTask(id));
  };
  return (
    <div className="flex h-full overflow-x-clip">
      <BesidePanel is_open={open_id !== undefined}>
        <QueryState read={read}>
          {(tasks) =>
            tasks.length === 0 ? (
              <Empty
                title="No tasks yet. A task is work that you ask a team to do."
                cli="svc tasks create TEAM 'Add gift cards'"
                operation="createTask"
              >
                <Button variant="primary" onClick={onNew}>
                  New task
                </Button>
              </Empty>
            ) : kept.length === 0 ? (
              <Empty title="No tasks match this filter.">
                <Button onClick={() => change({ q: undefined })}>Show all {tasks.length}</Button>
              </Empty>
            ) : is_list && open_id === undefined ? (
              <TaskList tasks={kept} {...cards} />
            ) : (
              <Board tasks={kept} narrow={is_list} {...cards} />
            )
          }
        </QueryState>
      </BesidePanel>
      {open ? (
        <Conversation
          key={open.task.id}
          shown={open}
          team={teams.find(({ id }) => id === open.task.team_id)!}
          search={search}
          change={change}
          onMove={onMove}
          refusal={refusal?.task_id === open.task.id ? refusal : null}
          onEdit={onEdit}
          onClose={close}
        />
      ) : (
        open_id !== undefined &&
        read.data && (
          <SidePanel title="This task does not exist." back="tasks" onClose={close}>
            <p className="text-muted">It may have been deleted.</p>
          </SidePanel>
        )
      )}
      <p aria-live="polite" className="sr-only">
        {moved}
      </p>
    </div>
  );
}

/** Moves tasks. A moved task keeps the focus, and a rejected move shows its error at the task. */
function useMoves() {
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [moved, setMoved] = useState('');
  const move = useMove({
    onMoved: ({ key, status }) => setMoved(`Moved ${key} to ${columnLabel(status)}`),
    onRefused: ({ id }, status, error) => setRefusal({ task_id: id, status, message: errorMessage(error) }),
  });
  const refocus = useRef<string | null>(null);
  useEffect(() => {
    // In its new column the card is a new element, so the focus is lost.
    if (refocus.current === null || holdsFocus(refocus.current)) return;
    if (document.activeElement === document.body) focusTask(refocus.current);
    refocus.current = null;
  });
  const onMove = (task: TaskRecord, status: TaskStatus) => {
    if (task.status === status) return;
    setRefusal(null);
    refocus.current = holdsFocus(task.id) ? task.id : null;
    move.mutate({ task, status });
  };
  return { moved, refusal, onMove };
}

/** Whether the task or its open menu has the focus. */
function holdsFocus(task_id: string): boolean {
  const focused = document.activeElement;
  return focused?.closest(`[data-task="${CSS.escape(task_id)}"], [role="menu"]`) != null;
}

function focusTask(task_id: string | undefined): void {
  if (task_id === undefined) return;
  const link = document.querySelector<HTMLElement>(`[data-task="${CSS.escape(task_id)}"] a`);
  link?.focus();
  // Cards in a folded column cannot have the focus.
  if (link && document.activeElement !== link)
    document.querySelector<HTMLElement>('[data-fold] button')?.focus();
}
