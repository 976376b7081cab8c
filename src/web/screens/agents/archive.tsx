/** Archiving agents that have ended, so that lists no longer show them. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Archive, ArchiveRestore } from 'lucide-react';
import { call } from '../../api/client.ts';
import type { AgentRecord } from '../../api/queries.ts';
import { showToast } from '../../ui/toast.tsx';
import { type Named, showProblem, storeAgent } from './actions.ts';

type Archivable = Named & Pick<AgentRecord, 'status' | 'activity' | 'needs_you' | 'archived_at'>;

/** What the agent's menus and the command palette offer; false while it runs or needs the user. */
export function useArchive(agent: Archivable | undefined) {
  const queries = useQueryClient();
  const change = useMutation({
    mutationFn: ({ id, archived_at }: Archivable) =>
      call('updateAgent', { params: { agent_id: id }, body: { archived: archived_at === null } }),
    onSuccess: (record) => {
      storeAgent(queries, record);
      showToast(record.name, record.archived_at === null ? 'Unarchived' : 'Archived');
    },
    onError: (error, { name }) => showProblem({ name }, error),
  });
  if (!agent || agent.status === 'running' || agent.activity !== null) return false;
  const is_archived = agent.archived_at !== null;
  if (!is_archived && agent.needs_you !== null) return false;
  return {
    label: is_archived ? 'Unarchive' : 'Archive',
    icon: is_archived ? <ArchiveRestore aria-hidden /> : <Archive aria-hidden />,
    disabled: change.isPending,
    onSelect: () => change.mutate(agent),
  };
}
