/** The states of a screen that needs several queries. */
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { QueryState } from '../../ui/states.tsx';

/** Shows the children once all queries have data. */
export function AllRead({ reads, children }: { reads: readonly UseQueryResult[]; children: ReactNode }) {
  const [first, ...rest] = reads;
  if (!first) return children;
  return <QueryState read={first}>{() => <AllRead reads={rest}>{children}</AllRead>}</QueryState>;
}
