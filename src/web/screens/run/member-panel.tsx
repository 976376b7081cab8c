/** One member of a run: what its agent says, what it prints, and the mail that it gets and sends. */
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
  const [chosen, setTab] = useState<(typeof tabs)[number] | null>(null);
  const spec = run.spec.members.find((one) => one.member_id === member_id);
  const member = members && [members.leader, ...members.members].find((one) => one.member_id === member_id);
  const agent_id = step?.member_id === member_id ? (step.agent_id ?? member?.agent_id) : member?.agent_id;
  // One that is about to be made is named before it is there.
  const { data: agents = [] } = useQuery(agentsQuery);
  const agent = agents.find(({ id }) => id === agent_id);
  const speaksAcp = agent?.protocol === 'acp' || spec?.agent?.protocol === 'acp';
  const fitting = spec?.agent === null ? 'mailbox' : speaksAcp ? 'conversation' : 'output';
  const tab = chosen ?? fitting;
  const pending = member?.pending_messages ?? 0;
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
            <span className="text-muted">
              {spec?.agent === null ? 'driven from outside' : 'no agent yet'}
            </span>
          )}
        </span>
      </header>
      <div
        role="tablist"
        aria-label={`Of ${member_id}`}
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
            onClick={() => setTab(one)}
            onKeyDown={(event) => {
              const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
              if (by === 0) return;
              const next = tabs[(tabs.indexOf(one) + by + tabs.length) % tabs.length]!;
              setTab(next);
              document.getElementById(`member-tab-${next}`)?.focus();
            }}
            className={cx(
              'tap -mb-px border-b-2 px-2',
              tab === one ? 'border-accent font-medium' : 'border-transparent text-muted hover:text-text',
            )}
          >
            {one}
            {one === 'mailbox' && pending > 0 && ` ${pending}`}
          </button>
        ))}
      </div>
      <div role="tabpanel" id="member-view" aria-labelledby={`member-tab-${tab}`}>
        {tab === 'mailbox' ? (
          <RunMailList run={run} live={!isRunOver(run)} of={`${member_id}@${run.team_id}`} />
        ) : agent ? (
          <Latest key={agent.id} agent_id={agent.id} kind={tab} />
        ) : (
          <p className="px-3 py-6 text-center text-muted">
            {spec?.agent === null
              ? 'People and programs take its steps.'
              : 'Its agent is made when its first step begins.'}
          </p>
        )}
      </div>
    </section>
  );
}
