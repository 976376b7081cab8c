/** One member of a run: its agent's conversation, its mail and its output. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { isRunOver } from '../../../features/runs/rules/run.ts';
import { agentsQuery, type RunRecord } from '../../api/queries.ts';
import { cx } from '../../ui/cx.ts';
import { Select } from '../../ui/select.tsx';
import { AgentStatus } from '../../ui/status.tsx';
import type { MembersRecord, StepRecord } from './facts.ts';
import { Latest } from './latest.tsx';
import { RunMailList } from './mail.tsx';

const tabs = ['conversation', 'mailbox', 'output'] as const;
type Tab = (typeof tabs)[number];
const tab_labels: Record<Tab, string> = {
  conversation: 'Conversation',
  mailbox: 'Mailbox',
  output: 'Output',
};

export function MemberPanel({
  run,
  member_id,
  step,
  members,
  onMember,
}: {
  run: RunRecord;
  member_id: string;
  step: StepRecord | undefined;
  members: MembersRecord | undefined;
  onMember: (member_id: string) => void;
}) {
  const [chosen, setTab] = useState<Tab | null>(null);
  const spec = run.spec.members.find((one) => one.member_id === member_id);
  const member = members && [members.leader, ...members.members].find((one) => one.member_id === member_id);
  const agent_id = step?.member_id === member_id ? (step.agent_id ?? member?.agent_id) : member?.agent_id;
  // The record may name an agent that does not exist yet.
  const { data: agents = [] } = useQuery(agentsQuery);
  const agent = agents.find(({ id }) => id === agent_id);
  const speaksAcp = agent?.protocol === 'acp' || spec?.agent?.protocol === 'acp';
  const fitting = spec?.agent === null ? 'mailbox' : speaksAcp ? 'conversation' : 'output';
  const tab = chosen ?? fitting;
  return (
    <section aria-label={`Member ${member_id}`} className="min-w-0 rounded-md border border-line">
      <header className="flex flex-wrap items-center justify-between gap-2 px-3 pt-2">
        <Select
          aria-label="Member"
          value={member_id}
          onChange={onMember}
          choices={run.spec.members.map((one) => ({ value: one.member_id, label: one.member_id }))}
          className="max-w-48"
        />
        <span className="flex min-w-0 items-center gap-2">
          {agent && <AgentStatus agent={agent} />}
          {agent ? (
            <Link
              to="/agents/$agent_id"
              params={{ agent_id: agent.id }}
              className="tap inline-flex items-center underline underline-offset-2"
            >
              Open agent
            </Link>
          ) : (
            <span className="text-muted">{spec?.agent === null ? 'External' : 'No agent yet'}</span>
          )}
        </span>
      </header>
      <Tabs member_id={member_id} tab={tab} pending={member?.pending_messages ?? 0} onTab={setTab} />
      <div role="tabpanel" id="member-view" aria-labelledby={`member-tab-${tab}`}>
        {tab === 'mailbox' ? (
          <RunMailList run={run} live={!isRunOver(run)} of={`${member_id}@${run.team_id}`} />
        ) : agent ? (
          <Latest key={agent.id} agent_id={agent.id} kind={tab} />
        ) : (
          <p className="px-3 py-6 text-center text-muted">
            {spec?.agent === null
              ? 'This member has no agent: people and programs carry out its steps.'
              : 'Its agent is created when its first step starts.'}
          </p>
        )}
      </div>
    </section>
  );
}

function Tabs({
  member_id,
  tab,
  pending,
  onTab,
}: {
  member_id: string;
  tab: Tab;
  /** The number of unread messages. */
  pending: number;
  onTab: (tab: Tab) => void;
}) {
  return (
    <div
      role="tablist"
      aria-label={`Tabs of ${member_id}`}
      className="flex gap-1 border-line border-b px-2 pt-1"
    >
      {tabs.map((one) => (
        <button
          key={one}
          type="button"
          role="tab"
          id={`member-tab-${one}`}
          aria-selected={tab === one}
          aria-controls="member-view"
          tabIndex={tab === one ? 0 : -1}
          onClick={() => onTab(one)}
          onKeyDown={(event) => {
            const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
            if (by === 0) return;
            const next = tabs[(tabs.indexOf(one) + by + tabs.length) % tabs.length]!;
            onTab(next);
            document.getElementById(`member-tab-${next}`)?.focus();
          }}
          className={cx(
            'tap -mb-px border-b-2 px-2',
            tab === one ? 'border-accent font-medium' : 'border-transparent text-muted hover:text-text',
          )}
        >
          {tab_labels[one]}
          {one === 'mailbox' && pending > 0 && ` ${pending}`}
        </button>
      ))}
    </div>
  );
}
