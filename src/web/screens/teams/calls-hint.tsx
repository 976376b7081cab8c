/** Says that the members of a team cannot talk to each other, and what to change. */
import { useQuery } from '@tanstack/react-query';
import { TriangleAlert } from 'lucide-react';
import { nodesQuery } from '../../api/queries.ts';
import { cx } from '../../ui/cx.ts';
import { lacksActorCalls } from './calls.ts';
import type { Doc } from './document.ts';

/** Renders nothing if they can, or need not. `spec`: also one that is being written, which may be of any form. */
export function CallsHint({ spec, className }: { spec: unknown; className?: string }) {
  const { data: nodes = [] } = useQuery(nodesQuery);
  if (!lacksActorCalls(spec as Doc, nodes)) return null;
  return (
    <p
      role="note"
      className={cx('flex items-start gap-2 rounded-md border border-line bg-marked px-3 py-2', className)}
    >
      <TriangleAlert aria-hidden className="mt-0.5 size-4 shrink-0 text-needs" />
      <span className="min-w-0 break-words">
        Members of this team cannot talk to each other. Ask root to set{' '}
        <code className="font-mono text-sm">internal_grpc.enabled = true</code> and restart svc.
      </span>
    </p>
  );
}
