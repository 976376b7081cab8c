/** The names of runs, which tell agents with the same name apart. */
import { useInfiniteQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { escapeHidden } from '../../core/visible.ts';
import { allRunsQuery, type ListedRunRecord } from './all-runs.ts';
import type { AgentRecord } from './queries.ts';

type NamedRun = Pick<ListedRunRecord, 'id' | 'number' | 'team_name'>;

/** The names of runs by id, such as `shop #2`. */
export type RunNames = ReadonlyMap<string, string>;

export function nameRuns(runs: readonly NamedRun[]): RunNames {
  return new Map(runs.map(({ id, number, team_name }) => [id, escapeHidden(`${team_name} #${number}`)]));
}

/** The names of the runs of agents, as far as the runs are among the newest ones. Reads these only if an agent has a run. */
export function useRunNames(agents: readonly Pick<AgentRecord, 'run_id'>[]): RunNames {
  const enabled = agents.some(({ run_id }) => run_id !== null);
  const { data } = useInfiniteQuery({ ...allRunsQuery, enabled });
  return useMemo(() => nameRuns(data?.pages.flatMap(({ items }) => items) ?? []), [data]);
}
