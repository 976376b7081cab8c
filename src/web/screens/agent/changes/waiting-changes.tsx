/** Says that the agent asks to change files, with a link to the question. */
import { Link } from '@tanstack/react-router';
import { useWaiting } from '../../../waiting/use-waiting.ts';

export function WaitingChanges({ agent_id }: { agent_id: string }) {
  const asks = useWaiting().open.flatMap((item) =>
    item.kind === 'permission' && item.agent_id === agent_id && hasDiff(item.review.tool_call)
      ? [item.review]
      : [],
  );
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
