/** What waits for the user, from the query cache, which the fleet feed keeps current. */
import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import {
  type AgentRecord,
  agentsQuery,
  type ElicitationRecord,
  elicitationsQuery,
  type ReviewRecord,
  reviewsQuery,
  type WaitingRunRecord,
  type WaitingStepRecord,
  waitingRunsQuery,
  waitingStepsQuery,
} from '../api/queries.ts';
import { useSession } from '../api/session.ts';
import { listItems, type WaitingItem } from './queue.ts';

const NO_REVIEWS: readonly ReviewRecord[] = [];
const NO_ELICITATIONS: readonly ElicitationRecord[] = [];
const NO_STEPS: readonly WaitingStepRecord[] = [];
const NO_RUNS: readonly WaitingRunRecord[] = [];
const NO_AGENTS: readonly AgentRecord[] = [];

/** Other changes of agents do not render anything again. */
const withoutSignIn = (agents: AgentRecord[]) => agents.filter(({ sign_in_since }) => sign_in_since !== null);

export interface Waiting {
  /** Also the reviews and elicitations that no longer wait; the longest wait first. */
  items: readonly WaitingItem[];
  open: readonly WaitingItem[];
  reads: readonly UseQueryResult[];
}

/** Ids of the runs in which something waits for the user. */
export function useWaitingRuns(): ReadonlySet<string> {
  const { open } = useWaiting();
  return useMemo(() => new Set(open.flatMap(({ run_id }) => run_id ?? [])), [open]);
}

export function useWaiting(): Waiting {
  const user = useSession()?.user;
  const enabled = user !== undefined;
  const read_reviews = useQuery({ ...reviewsQuery, enabled });
  const read_elicitations = useQuery({ ...elicitationsQuery, enabled });
  const read_steps = useQuery({ ...waitingStepsQuery, enabled });
  const read_runs = useQuery({ ...waitingRunsQuery, enabled });
  const read_agents = useQuery({ ...agentsQuery, enabled, select: withoutSignIn });
  const { data: reviews = NO_REVIEWS } = read_reviews;
  const { data: elicitations = NO_ELICITATIONS } = read_elicitations;
  const { data: steps = NO_STEPS } = read_steps;
  const { data: runs = NO_RUNS } = read_runs;
  const { data: agents = NO_AGENTS } = read_agents;
  const [id, role] = [user?.id ?? '', user?.role ?? ''];
  const items = useMemo(
    () => listItems({ reviews, elicitations, steps, runs, agents }, { id, role }),
    [reviews, elicitations, steps, runs, agents, id, role],
  );
  const open = useMemo(() => items.filter((item) => item.open), [items]);
  return { items, open, reads: [read_reviews, read_elicitations, read_steps, read_runs, read_agents] };
}
