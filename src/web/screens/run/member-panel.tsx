/** The members of a run as tabs, and one of them: its agent's conversation and its output, and views of other features. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { isRunOver } from '../../../features/runs/rules/run.ts';
import { type AgentRecord, agentsQuery, type RunRecord } from '../../api/queries.ts';
import type { MemberTab } from '../../feature.ts';
import { features } from '../../features.ts';
import { Segmented } from '../../ui/segmented.tsx';
import { AgentIcon, AgentStatus, StatusIcon } from '../../ui/status.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import type { MemberRecord, MembersRecord, StepRecord } from './facts.ts';
import { Latest } from './latest.tsx';

const feature_tabs = features.flatMap(({ member_tab = [] }) => member_tab);
const tabs: readonly { name: string; label: string; count?: MemberTab['count'] }[] = [
  { name: 'conversation', label: 'Conversation' },
  ...feature_tabs,
  { name: 'output', label: 'Output' },
];

export function MemberPanel({
  run,
  member_id,
  step,
  members,
  onMember,
  onUse,
}: {
  run: RunRecord;
  member_id: string;
  step: StepRecord | undefined;
  members: MembersRecord | undefined;
  onMember: (member_id: string) => void;
  /** Called before the view changes, so that the page keeps showing this member. */
  onUse: () => void;
}) {
  const [chosen, setTab] = useState<string | null>(null);
  const spec = run.spec.members.find((member) => member.member_id === member_id);
  const memberOf = (id: string) =>
    members && [members.leader, ...members.members].find((item) => item.member_id === id);
  const member = memberOf(member_id);
  const agent_id = step?.member_id === member_id ? (step.agent_id ?? member?.agent_id) : member?.agent_id;
  // The record may name an agent that does not exist yet.
  const { data: agents = [] } = useQuery(agentsQuery);
  const agent = agents.find(({ id }) => id === agent_id);
  const speaksAcp = agent?.protocol === 'acp' || spec?.agent?.protocol === 'acp';
  const own = spec?.agent === null ? feature_tabs[0]?.name : undefined;
  const fitting = own ?? (speaksAcp ? 'conversation' : 'output');
  const tab = chosen ?? fitting;
  const View = feature_tabs.find(({ name }) => name === tab)?.part.view();
  return (
    <section aria-label={`Member ${member_id}`} className="min-w-0 rounded-lg border border-line">
      <Tabs
        label="Members"
        tabs={run.spec.members.map((item) => ({
          value: item.member_id,
          label: <MemberLabel id={item.member_id} member={memberOf(item.member_id)} agents={agents} />,
        }))}
        value={member_id}
        onValue={onMember}
        className="px-3"
      >
        <header className="flex flex-wrap items-center justify-between gap-2 px-3 pt-2">
          <Segmented
            label={`Views of ${member_id}`}
            segments={tabs.map(({ name, label, count }) => ({
              value: name,
              label: member && count?.(member) ? `${label} ${count(member)}` : label,
            }))}
            value={tab}
            onValue={(next) => {
              onUse();
              setTab(next);
            }}
          />
          {agent ? (
            <AgentLink agent={agent} />
          ) : (
            <span className="text-muted">{spec?.agent === null ? 'External' : 'No agent yet'}</span>
          )}
        </header>
        {View ? (
          <View run={run} live={!isRunOver(run)} actor_id={`${member_id}@${run.team_id}`} />
        ) : agent ? (
          <Latest key={agent.id} agent={agent} kind={tab === 'output' ? 'output' : 'conversation'} />
        ) : (
          <p className="px-3 py-6 text-center text-muted">
            {spec?.agent === null
              ? 'This member has no agent: people and programs carry out its steps.'
              : 'Its agent is created when its first step starts.'}
          </p>
        )}
      </Tabs>
    </section>
  );
}

function AgentLink({ agent }: { agent: AgentRecord }) {
  return (
    <span className="flex min-w-0 items-center gap-2">
      <AgentStatus agent={agent} />
      <Link
        to="/agents/$agent_id"
        params={{ agent_id: agent.id }}
        className="tap inline-flex items-center underline underline-offset-2"
      >
        Open agent
      </Link>
    </span>
  );
}

function MemberLabel({
  id,
  member,
  agents,
}: {
  id: string;
  member: MemberRecord | undefined;
  agents: readonly AgentRecord[];
}) {
  const agent = agents.find((one) => one.id === member?.agent_id);
  return (
    <>
      {agent ? <AgentIcon agent={agent} /> : <StatusIcon status={member?.status ?? 'created'} />}
      <span className="max-w-40 truncate">{id}</span>
    </>
  );
}
