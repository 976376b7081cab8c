/**
 * Runs, newest first, in pages: those of all teams, of all teams with one status, or of one team. The fleet feed keeps current
 * those that were read.
 */
import { type InfiniteData, infiniteQueryOptions, type QueryClient } from '@tanstack/react-query';
import { clientLimits } from '../../base/limits.ts';
import type { Frame } from '../../client/client.ts';
import { runTitle } from '../../features/runs/rules/run.ts';
import { afterFetch } from './after-fetch.ts';
import { call, type ItemOf } from './client.ts';
import { keys } from './keys.ts';
import { type RunRecord, readRuns, type TeamRecord } from './queries.ts';

export type ListedRunRecord = ItemOf<'listAllRuns'>;

interface RunsPage {
  items: ListedRunRecord[];
  next_cursor?: string | undefined;
}
type Pages = InfiniteData<RunsPage, string | undefined>;

const in_pages = {
  initialPageParam: undefined as string | undefined,
  getNextPageParam: (page: RunsPage) => page.next_cursor,
};

/** Without a status: the runs with any status. */
const runsWith = (status?: RunRecord['status']) =>
  infiniteQueryOptions({
    queryKey: status === undefined ? keys.all_runs : keys.runs_with(status),
    queryFn: async ({ pageParam: cursor }) => {
      // With a limit it is a page.
      const query = { limit: clientLimits.page_items_max, cursor, status };
      return (await call('listAllRuns', { query })) as RunsPage;
    },
    ...in_pages,
    // The feed does not say that a team was renamed or deleted, or that the user left it.
    staleTime: 10_000,
    refetchOnWindowFocus: true,
  });

export const allRunsQuery = runsWith();
export const runsWithQuery = (status: RunRecord['status']) => runsWith(status);
export const teamRunsQuery = ({ id, name }: Pick<TeamRecord, 'id' | 'name'>) =>
  infiniteQueryOptions({
    queryKey: keys.team_runs(id),
    queryFn: async ({ pageParam: cursor }): Promise<RunsPage> => {
      const { items, next_cursor } = await readRuns(id, cursor);
      return { items: items.map((run) => toListed(run, name)), next_cursor };
    },
    ...in_pages,
  });

export function applyToAllRuns(queries: QueryClient, { event, data }: Frame): void {
  const record = data.record as ChangedRun | undefined;
  if (event === 'run' && record) putListedRun(queries, record);
}

/** Puts a run that was created, changed or deleted into the lists that were read. */
export function putListedRun(queries: QueryClient, record: ChangedRun): void {
  const cache = queries.getQueryCache();
  const team = cache.find({ queryKey: keys.team_runs(record.team_id) });
  for (const query of [team, ...cache.findAll({ queryKey: keys.all_runs })]) {
    if (!query) continue;
    const { queryKey } = query;
    const status =
      query === team ? undefined : (queryKey[keys.all_runs.length] as RunRecord['status'] | undefined);
    const change = () => {
      const pages = queries.getQueryData<Pages>(queryKey);
      if (!pages) return;
      const changed = changedPages(pages, record, {
        status,
        teams: queries.getQueryData<TeamRecord[]>(keys.teams),
      });
      if (changed === null) void queries.invalidateQueries({ queryKey, exact: true });
      else if (changed !== pages) queries.setQueryData(queryKey, changed);
    };
    // The result of a fetch in progress may be older than the change.
    afterFetch(query, change);
    change();
  }
}

type ChangedRun = RunRecord & { deleted?: boolean };

/** Null: the list must be read again. */
function changedPages(
  data: Pages,
  record: ChangedRun,
  { status, teams }: { status: RunRecord['status'] | undefined; teams: readonly TeamRecord[] | undefined },
): Pages | null {
  const listed = data.pages.flatMap(({ items }) => items);
  const known = listed.find(({ id }) => id === record.id);
  const belongs = status === undefined || record.status === status;
  if (known) {
    const remove = () => withItems(data, (items) => items.filter((item) => item !== known));
    if (record.deleted) return remove();
    if (record.version < known.version) return data;
    if (!belongs) return remove();
    const changed = toListed(record, known.team_name);
    return withItems(data, (items) => items.map((item) => (item === known ? changed : item)));
  }
  if (record.deleted || !belongs) return data;
  const [first, last] = [listed[0], listed.at(-1)];
  const is_newest = first === undefined || record.created_at >= first.created_at;
  // It is on a page that was not read.
  const has_more = data.pages.at(-1)?.next_cursor !== undefined;
  if (has_more && last !== undefined && record.created_at < last.created_at) return data;
  const team =
    listed.find(({ team_id }) => team_id === record.team_id)?.team_name ??
    teams?.find(({ id }) => id === record.team_id)?.name;
  if (!is_newest || team === undefined) return null;
  return withItems(data, (items, page) => (page === 0 ? [toListed(record, team), ...items] : items));
}

function withItems(
  data: Pages,
  change: (items: ListedRunRecord[], page: number) => ListedRunRecord[],
): Pages {
  return { ...data, pages: data.pages.map((page, at) => ({ ...page, items: change(page.items, at) })) };
}

function toListed(
  { spec: _spec, input, output: _output, ...record }: RunRecord,
  team_name: string,
): ListedRunRecord {
  return { ...record, team_name, title: runTitle(input) };
}
