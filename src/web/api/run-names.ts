/** The names of runs, which tell agents with the same name apart. */
import { useInfiniteQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { escapeHidden } from '../../core/visible.ts';
import { allRunsQuery, type ListedRunRecord } from './all-runs.ts';
import type { AgentRecord } from './queries.ts';

type NamedRun = Pick<ListedRunRecord, 'id' | 'number' | 'team_name'>;
type Member = Pick<AgentRecord, 'run_id' | 'labels'>;

/** The names of runs by id, such as `shop #2`. */
export type RunNames = ReadonlyMap<string, string>;

/**
 * Names the runs, and those of the agents. Runs that are not listed get their names from the labels with which svc creates
 * the agents of a run; their team may have been renamed since.
 */
export function nameRuns(runs: readonly NamedRun[], agents: readonly Member[]): RunNames {
  const names = new Map<string, string>();
  for (const { run_id, labels } of agents) {
    if (run_id === null) continue;
    const { team, run } = labels;
    names.set(run_id, team && run ? escapeHidden(`${team} #${run}`) : 'Run');
  }
  for (const { id, number, team_name } of runs) names.set(id, escapeHidden(`${team_name} #${number}`));
  return names;
}

/** The names of the runs of agents. Reads the newest runs, but only if an agent has a run. */
export function useRunNames(agents: readonly Member[]): RunNames {
  const enabled = agents.some(({ run_id }) => run_id !== null);
  const { data } = useInfiniteQuery({ ...allRunsQuery, enabled });
  return useMemo(() => nameRuns(data?.pages.flatMap(({ items }) => items) ?? [], agents), [data, agents]);
}
