/** The members of a run without steps. */
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { RunRecord } from '../../api/queries.ts';
import { cx } from '../../ui/cx.ts';
import { QueryState } from '../../ui/states.tsx';
import type { WaitingItem } from '../../waiting/queue.ts';
import type { MembersRecord } from './facts.ts';
import { RunStatus } from './status.tsx';

export function Members({
  members,
  run,
  waiting,
  selected,
  onSelect,
  adding,
}: {
  members: UseQueryResult<MembersRecord>;
  run: RunRecord;
  /** What waits for the user in the run. */
  waiting: readonly WaitingItem[];
  selected: string | undefined;
  onSelect: (member_id: string) => void;
  /** The button that adds a step, if one can be added. */
  adding: ReactNode;
}) {
  const waiters = new Set(waiting.map(({ agent_id }) => agent_id));
  return (
    <section aria-label="Members" className="min-w-0 rounded-md border border-line">
      <header className="flex flex-wrap items-center justify-between gap-2 border-line border-b px-3 py-1.5">
        <h2 className="font-medium">Members</h2>
        {adding}
      </header>
      <QueryState read={members} rows={3}>
        {(read) => (
          <ul>
            {everyone(read).map((member) => {
              const { member_id } = member;
              const known = run.spec.members.find((member) => member.member_id === member_id);
              return (
                <li
                  key={member.actor_id}
                  className={cx(
                    'flex flex-wrap items-center gap-x-3 border-line border-t px-3 py-1 first:border-t-0',
                    member_id !== null && member_id === selected && 'bg-marked',
                  )}
                >
                  {member_id === null ? (
                    <span className="tap inline-flex items-center font-medium">
                      {member.actor_id.replace('user:', '')}
                    </span>
                  ) : (
                    <button
                      type="button"
                      aria-pressed={member_id === selected}
                      onClick={() => onSelect(member_id)}
                      className="tap max-w-full truncate font-medium hover:underline"
                    >
                      {member_id}
                    </button>
                  )}
                  <span className="text-muted">{member.role}</span>
                  {member.status && (
                    <RunStatus status={member.status} needs_you={waiters.has(member.agent_id)} />
                  )}
                  <span className="min-w-0 truncate text-muted">{known?.description}</span>
                </li>
              );
            })}
          </ul>
        )}
      </QueryState>
    </section>
  );
}

/** The leader first, once. */
export function everyone({ leader, members }: MembersRecord): MembersRecord['members'] {
  return [leader, ...members.filter(({ actor_id }) => actor_id !== leader.actor_id)];
}
