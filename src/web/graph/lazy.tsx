/** Loads the graph when one is shown, because its libraries are large. */
import { lazy, Suspense } from 'react';
import { Skeleton } from '../ui/states.tsx';
import type { StepsGraphProps } from './steps-graph.tsx';

const Graph = lazy(() => import('./steps-graph.tsx'));

/** With more steps, the table is shown first. */
export const GRAPH_STEPS_MAX = 300;

export function StepsGraph(props: StepsGraphProps) {
  return (
    <Suspense fallback={<Skeleton rows={3} height="h-11" />}>
      <Graph {...props} />
    </Suspense>
  );
}
