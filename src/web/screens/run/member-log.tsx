/** The last rows of a member's conversation, as its own page shows them. */
import { useMemo } from 'react';
import type { Item } from '../../../acp/transcript/items.ts';
import type { AgentRecord } from '../../api/queries.ts';
import { RowBlock } from '../agent/conversation/row.tsx';
import { buildRows } from '../agent/conversation/rows.ts';

export default function MemberLog({ agent, items }: { agent: AgentRecord; items: readonly Item[] }) {
  const folder = useMemo(() => ({ agent_id: agent.id, workdir: agent.workdir }), [agent.id, agent.workdir]);
  return (
    <div className="flex min-w-0 flex-col gap-2">
      {buildRows(items).map((row) => (
        <RowBlock key={row.key} row={row} folder={folder} agent={agent} marked={null} />
      ))}
    </div>
  );
}
