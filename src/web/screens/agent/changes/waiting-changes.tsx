/** Says that the agent asks to change files, with a link to the question. */
import { Link } from '@tanstack/react-router';
import type { ReviewRecord } from '../../../api/queries.ts';
import { useWaiting } from '../../../waiting/use-waiting.ts';

/** The agent's open requests to change files. */
export function useWaitingChanges(agent_id: string): readonly ReviewRecord[] {
  return useWaiting().open.flatMap((item) =>
    item.kind === 'permission' && item.agent_id === agent_id && hasDiff(item.review.tool_call)
      ? [item.review]
      : [],
  );
}

export function WaitingChanges({ asks }: { asks: readonly ReviewRecord[] }) {
  const first = asks[0];
  if (!first) return null;
  return (
    <p role="status" className="shrink-0 border-line border-b px-3 py-1.5">
      <Link
        to="/approvals"
        search={{ review: first.id }}
        className="tap inline-flex items-center text-needs underline"
      >
        {asks.length === 1 ? '1 change waits for your answer' : `${asks.length} changes wait for your answer`}
      </Link>
    </p>
  );
}

function hasDiff({ content }: { content?: unknown }): boolean {
  return Array.isArray(content) && content.some((part) => part?.type === 'diff');
}
