/** Tasks as this room reads and changes them. */
import {
  type QueryClient,
  type UseQueryResult,
  useInfiniteQuery,
  useMutation,
  useMutationState,
  useQueries,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { Problem } from '../../../core/problem.ts';
import { useActKey } from '../../api/act-key.ts';
import { call } from '../../api/client.ts';
import {
  type RunRecord,
  runsQuery,
  type TaskRecord,
  type TeamRecord,
  tasksQuery,
} from '../../api/queries.ts';
import { streams } from '../../live/streams.ts';
import type { TaskStatus } from './columns.ts';
import { belonging, inOrder, type MessageRecord } from './talk.ts';

/** A team that cannot be read hides no other. */
const together = <T>(reads: UseQueryResult<T[]>[]) => {
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

export function useTasksOf(teams: readonly TeamRecord[]) {
  return useQueries({ queries: teams.map(({ id }) => tasksQuery(id)), combine: together<TaskRecord> });
}

/** The runs of all teams that have a task with one, by id. */
export function useRunsOf(tasks: readonly TaskRecord[]): Map<string, RunRecord> {
  const teams = [...new Set(tasks.filter(({ run_id }) => run_id !== null).map(({ team_id }) => team_id))];
  const { data } = useQueries({ queries: teams.map((id) => runsQuery(id)), combine: together<RunRecord> });
  return useMemo(() => new Map((data ?? []).map((run) => [run.id, run])), [data]);
}

export function isRunOpen({ status }: RunRecord): boolean {
  return status === 'pending' || status === 'running' || status === 'input_required';
}

/** What the server answered, unless something newer is known already. */
export function putTask(queries: QueryClient, task: TaskRecord): void {
  queries.setQueryData<TaskRecord[]>(['tasks', task.team_id], (rows) => {
    if (!rows) return rows;
    const at = rows.findIndex(({ id }) => id === task.id);
    if (at === -1) return [task, ...rows];
    return rows[at]!.version > task.version ? rows : rows.with(at, task);
  });
}

const paramsOf = ({ team_id, id }: TaskRecord) => ({ team_id, task_id: id });

/** Somebody else was quicker: the task as it is now, so that another attempt builds on it. */
export async function readAfterConflict(
  queries: QueryClient,
  task: TaskRecord,
  error: unknown,
): Promise<TaskRecord | null> {
  if (!(error instanceof Problem) || error.code !== 'task_changed') return null;
  const now = await call('getTask', { params: paramsOf(task) });
  putTask(queries, now);
  return now;
}

const MOVE = ['move-task'];

interface Move {
  task: TaskRecord;
  status: TaskStatus;
}

export function useMove(told: {
  onMoved: (task: TaskRecord) => void;
  onRefused: (task: TaskRecord, status: TaskStatus, error: unknown) => void;
}) {
  const queries = useQueryClient();
  return useMutation({
    mutationKey: MOVE,
    mutationFn: ({ task, status }: Move) =>
      call('updateTask', { params: paramsOf(task), body: { status, version: task.version } }),
    onSuccess: (task) => {
      putTask(queries, task);
      told.onMoved(task);
    },
    onError: async (error, { task, status }) => {
      told.onRefused(task, status, error);
      await readAfterConflict(queries, task, error).catch(() => null);
    },
  });
}

/** Where tasks are being moved to: they are shown there until the server has answered, whatever is read meanwhile. */
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
      call('startTaskRun', { params: paramsOf(task), idempotency_key: keyOf([task.id, task.version]) }),
    onSuccess: (run) => {
      queries.setQueryData<RunRecord[]>(['runs', task.team_id], (rows) =>
        rows?.some(({ id }) => id === run.id) ? rows : [run, ...(rows ?? [])],
      );
    },
  });
}

const PAGE = 50;

/**
 * A conversation from its end, older pages as they are asked for. What is said now comes with the stream of all changes,
 * which a browser has once however many pages show conversations.
 */
export function useConversation(
  task: TaskRecord,
  shown: { q?: string | undefined; thread?: number | undefined },
) {
  const { id: task_id, team_id } = task;
  const { q, thread } = shown;
  const [told, setTold] = useState<MessageRecord[]>([]);
  const tell = (messages: MessageRecord[]) => setTold((old) => [...old, ...messages]);
  useEffect(
    () =>
      streams().onFleet((frames) => {
        const mine = frames
          .filter(({ event }) => event === 'message')
          .map(({ data }) => data.record as MessageRecord)
          .filter((message) => message.task_id === task_id);
        if (mine.length > 0) setTold((old) => [...old, ...mine]);
      }),
    [task_id],
  );
  const read = useInfiniteQuery({
    queryKey: ['messages', team_id, task_id, q ?? '', thread ?? 0],
    queryFn: async ({ pageParam, signal }) => {
      const query = { limit: PAGE, order: 'newest' as const, q, thread, cursor: pageParam };
      const page = await call('listMessages', { params: { team_id, task_id }, query, signal });
      return page as { items: MessageRecord[]; next_cursor?: string };
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor,
    // The stream tells what is said while somebody looks, not before.
    gcTime: 0,
    refetchOnMount: 'always',
  });
  const messages = useMemo(() => {
    const pages = (read.data?.pages ?? []).map(({ items }) => items);
    return inOrder(pages, belonging(told, pages.flat(), { q, thread }));
  }, [read.data, told, q, thread]);
  return { read, messages, tell };
}

/** A message that is not on the page, for those that answer it. */
export function useMessage(task: TaskRecord, message_id: number, wanted: boolean) {
  const { data } = useQuery({
    queryKey: ['message', task.id, message_id],
    queryFn: () => call('getMessage', { params: { ...paramsOf(task), message_id: String(message_id) } }),
    enabled: wanted,
  });
  return data ?? null;
}
