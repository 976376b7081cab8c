/** Loads the graph when one is shown, because its libraries are large. Its room is reserved, so that nothing moves. */
import { lazy, Suspense, useMemo } from 'react';
import { cx } from '../ui/cx.ts';
import { Skeleton } from '../ui/states.tsx';
import { estimateSize } from './size.ts';
import type { StepsGraphProps } from './steps-graph.tsx';

const Graph = lazy(() => import('./steps-graph.tsx'));

/** With more steps, the table is shown first. */
export const GRAPH_STEPS_MAX = 300;

const HEIGHT_MIN = 120;
const HEIGHT_MAX = 360;
/** The zoom controls are above the steps. */
const CONTROLS = 48;

export function StepsGraph({ className, ...props }: StepsGraphProps & { className?: string }) {
  const { steps } = props;
  const { width, height } = useMemo(() => estimateSize(steps), [steps]);
  const full = height + CONTROLS;
  return (
    <div
      className={cx('w-full', className)}
      style={{
        aspectRatio: `${width} / ${full}`,
        minHeight: HEIGHT_MIN,
        maxHeight: Math.min(HEIGHT_MAX, Math.max(HEIGHT_MIN, full)),
      }}
    >
      <Suspense fallback={<Skeleton rows={1} height="h-11" />}>
        <Graph {...props} />
      </Suspense>
    </div>
  );
}
