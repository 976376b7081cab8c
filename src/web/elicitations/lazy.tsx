/** Loads the card when an agent asks for input: most conversations never need it. */
import { lazy, Suspense } from 'react';
import type { ElicitationCardProps } from './card.tsx';

const Card = lazy(() => import('./card.tsx').then((module) => ({ default: module.ElicitationCard })));

export function LazyElicitationCard(props: ElicitationCardProps) {
  return (
    <Suspense fallback={<p role="status">Loading the request…</p>}>
      <Card {...props} />
    </Suspense>
  );
}
