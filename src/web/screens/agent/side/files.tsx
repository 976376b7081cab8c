/** The files that an agent changed, each with a link to its diff. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Turn } from '../../../../acp/transcript/items.ts';
import { escapeHidden } from '../../../../core/visible.ts';
import { type AgentRecord, changesQuery } from '../../../api/queries.ts';
import { Counts } from '../../../reviews/diff-view.tsx';
import { PathText } from '../../../ui/path-text.tsx';

const SHOWN = 12;
const AGAIN_MS = 10_000;

export function Files({ agent, turn }: { agent: AgentRecord; turn: Turn | undefined }) {
  const { data: changes } = useQuery({
    ...changesQuery(agent.id),
    // Nothing reports writes to a folder.
    refetchInterval: turn?.ended_ts === null ? AGAIN_MS : false,
  });
  if (!changes?.git || changes.files.length === 0) return null;
  return (
    <section aria-label="Files">
      <h2 className="font-medium">Files {changes.files.length}</h2>
      <ul>
        {changes.files.slice(0, SHOWN).map(({ path, additions, deletions, status }) => (
          <li key={path}>
            <Link
              to="/agents/$agent_id/$tab"
              params={{ agent_id: agent.id, tab: 'changes' }}
              search={{ file: path }}
              title={`${escapeHidden(path)} (${status})`}
              className="tap flex min-w-0 items-center justify-between gap-2 hover:underline"
            >
              <PathText path={escapeHidden(path)} />
              <Counts added={additions ?? 0} removed={deletions ?? 0} />
            </Link>
          </li>
        ))}
      </ul>
      {changes.files.length > SHOWN && (
        <Link to="/agents/$agent_id/$tab" params={{ agent_id: agent.id, tab: 'changes' }} search={{}}>
          {changes.files.length - SHOWN} more
        </Link>
      )}
    </section>
  );
}
