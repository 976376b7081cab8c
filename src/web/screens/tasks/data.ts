/** Queries and mutations of tasks and their messages. */
import {
  type QueryClient,
  queryOptions,
  type UseQueryResult,
  useInfiniteQuery,
  useMutation,
  useMutationState,
  useQueries,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query';
import { useEffect, useMemo, useRef, useState } from 'react';
import { Problem } from '../../../core/problem.ts';
import { useActKey } from '../../api/act-key.ts';
import { allRunsQuery, type ListedRunRecord, putListedRun } from '../../api/all-runs.ts';
import { type Answered, all, call } from '../../api/client.ts';
import { type RunRecord, runsQuery, type TeamRecord } from '../../api/queries.ts';
import { streams } from '../../live/streams.ts';
import type { TaskStatus } from './columns.ts';
import { keys } from './keys.ts';
import { filterShown, type MessageRecord, mergeMessages } from './thread.ts';

export type TaskRecord = Answered<'getTask'>;

const tasksQuery = (team_id: string) =>
  queryOptions({
    queryKey: keys.tasks(team_id),
    queryFn: () => all('listTasks', { params: { team_id } }),
  });

/** Combines queries so that one team's failure does not hide the others. */
const combined = <T>(reads: UseQueryResult<T[]>[]) => {
  const settled = reads.every((read) => read.data !== undefined || read.error !== null);
  const some = reads.length === 0 || reads.some((read) => read.data !== undefined);
  return {
    data: settled && some ? reads.flatMap((read) => read.data ?? []) : undefined,
    error: reads.find((read) => read.error !== null)?.error ?? null,
    isPending: !settled,
    dataUpdatedAt: Math.min(...reads.map((read) => read.dataUpdatedAt || Number.POSITIVE_INFINITY)),
    refetch: () => Promise.all(reads.map((read) => read.refetch())),
  };
};

export function useTeamTasks(teams: readonly TeamRecord[]) {
  return useQueries({ queries: teams.map(({ id }) => tasksQuery(id)), combine: combined<TaskRecord> });
}

/** A run as tasks show it. */
export type TaskRunRecord = Omit<ListedRunRecord, 'team_name' | 'title'>;

/**
 * The runs of the tasks, by id. Most are among the newest runs of all teams; only those of other teams are read for each team.
 */
export function useTaskRuns(tasks: readonly TaskRecord[]): Map<string, TaskRunRecord> {
  const { data: newest, hasNextPage } = useInfiniteQuery(allRunsQuery);
  const listed = useMemo(
    () => new Map(newest?.pages.flatMap(({ items }) => items.map((run) => [run.id, run] as const))),
    [newest],
  );
  const missing = hasNextPage
    ? tasks.filter(({ run_id }) => run_id !== null && !listed.has(run_id)).map(({ team_id }) => team_id)
    : [];
  const { data: older } = useQueries({
    queries: [...new Set(missing)].map((id) => runsQuery(id)),
    combine: combined<RunRecord>,
  });
  return useMemo(
    () => new Map<string, TaskRunRecord>([...(older ?? []).map((run) => [run.id, run] as const), ...listed]),
    [older, listed],
  );
}

export function isRunOpen({ status }: Pick<RunRecord, 'status'>): boolean {
  return status === 'pending' || status === 'running' || status === 'input_required';
}

/** Caches a task, unless a newer version is cached. */
export function putTask(queries: QueryClient, task: TaskRecord): void {
  queries.setQueryData<TaskRecord[]>(keys.tasks(task.team_id), (rows) => {
    if (!rows) return rows;
    const at = rows.findIndex(({ id }) => id === task.id);
    if (at === -1) return [task, ...rows];
    return rows[at]!.version > task.version ? rows : rows.with(at, task);
  });
}

const taskParams = ({ team_id, id }: TaskRecord) => ({ team_id, task_id: id });

/** After a version conflict, reads and caches the current task; null for any other error. */
export async function refetchAfterConflict(
  queries: QueryClient,
  task: TaskRecord,
  error: unknown,
): Promise<TaskRecord | null> {
  if (!(error instanceof Problem) || error.code !== 'task_changed') return null;
  const now = await call('getTask', { params: taskParams(task) });
  putTask(queries, now);
  return now;
}

const MOVE = ['move-task'];

interface Move {
  task: TaskRecord;
  status: TaskStatus;
}

/**
 * Moves run one after the other. A card that is moved again before the server has answered still has its old version, so
 * the next move starts from the version that the one before it made: nobody conflicts with themselves.
 */
export function useMove(listener: {
  onMoved: (task: TaskRecord) => void;
  onRefused: (task: TaskRecord, status: TaskStatus, error: unknown) => void;
}) {
  const queries = useQueryClient();
  const made = useRef(new Map<string, { from: number; to: number }>());
  return useMutation({
    mutationKey: MOVE,
    scope: { id: 'move-task' },
    mutationFn: ({ task, status }: Move) => {
      const last = made.current.get(task.id);
      const version = last?.from === task.version ? last.to : task.version;
      return call('updateTask', { params: taskParams(task), body: { status, version } });
    },
    onSuccess: (task, { task: shown }) => {
      made.current.set(task.id, { from: shown.version, to: task.version });
      putTask(queries, task);
      listener.onMoved(task);
    },
    onError: async (error, { task, status }) => {
      listener.onRefused(task, status, error);
      await refetchAfterConflict(queries, task, error).catch(() => null);
    },
  });
}

/** The target columns of tasks that are being moved: they are shown there until the server has answered. */
export function useMoving(): ReadonlyMap<string, TaskStatus> {
  const moves = useMutationState({
    filters: { mutationKey: MOVE, status: 'pending' },
    select: ({ state }) => state.variables as Move,
  });
  return useMemo(() => new Map(moves.map(({ task, status }) => [task.id, status])), [moves]);
}

export function useStartRun(task: TaskRecord) {
  const queries = useQueryClient();
  const keyOf = useActKey();
  return useMutation({
    mutationFn: () =>
      call('startTaskRun', {
        params: taskParams(task),
        // The deletion of a run does not change the version.
        idempotency_key: keyOf([task.id, task.version, task.run_id]),
      }),
    onSuccess: (run) => putListedRun(queries, run),
  });
}

const PAGE = 50;

/**
 * The thread of a task, from its end; older pages are read on demand. New messages arrive with the fleet feed, which all
 * pages of a browser share.
 */
export function useThread(task: TaskRecord, shown: { q?: string | undefined; thread?: number | undefined }) {
  const { id: task_id, team_id } = task;
  const { q, thread } = shown;
  const [fresh, setFresh] = useState<MessageRecord[]>([]);
  const add = (messages: MessageRecord[]) => setFresh((old) => [...old, ...messages]);
  useEffect(
    () =>
      streams().onFleet((frames) => {
        const mine = frames
          .filter(({ event }) => event === 'message')
          .map(({ data }) => data.record as MessageRecord)
          .filter((message) => message.task_id === task_id);
        if (mine.length > 0) setFresh((old) => [...old, ...mine]);
      }),
    [task_id],
  );
  const read = useInfiniteQuery({
    queryKey: keys.messages(team_id, task_id, q, thread),
    queryFn: async ({ pageParam, signal }) => {
      const query = { limit: PAGE, order: 'newest' as const, q, thread, cursor: pageParam };
      const page = await call('listMessages', { params: { team_id, task_id }, query, signal });
      return page as { items: MessageRecord[]; next_cursor?: string };
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor,
    // The stream delivers messages only while the thread is open.
    gcTime: 0,
    refetchOnMount: 'always',
  });
  const messages = useMemo(() => {
    const pages = (read.data?.pages ?? []).map(({ items }) => items);
    return mergeMessages(pages, filterShown(fresh, pages.flat(), { q, thread }));
  }, [read.data, fresh, q, thread]);
  return { read, messages, add };
}

/** A message that is not on the page, to show what a reply answers. */
export function useMessage(task: TaskRecord, message_id: number, enabled: boolean) {
  const { data } = useQuery({
    queryKey: keys.message(task.id, message_id),
    queryFn: () => call('getMessage', { params: { ...taskParams(task), message_id: String(message_id) } }),
    enabled: enabled,
  });
  return data ?? null;
}
