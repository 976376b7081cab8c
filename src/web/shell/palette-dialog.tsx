/** The open palette: pages, agents, teams, runs and actions, found by a few letters and opened by keys. */
import { Dialog as Base } from '@base-ui/react/dialog';
import { useQueries, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Command } from 'cmdk';
import { type ReactNode, useMemo, useState } from 'react';
import { wordsOf } from '../api/client.ts';
import { agentsQuery, runsQuery, teamsQuery } from '../api/queries.ts';
import { signOut } from '../api/sign-out.ts';
import { Status } from '../ui/status.tsx';
import { tell } from '../ui/toast.tsx';
import { setAppearance } from './appearance.ts';
import { type Findable, find } from './palette-find.ts';
import { startDemo } from './start-agent.ts';

/** Runs of so many teams are looked through, the newest teams first. */
const TEAMS_WITH_RUNS_MAX = 20;

export interface PaletteProps {
  onOpen: (open: boolean) => void;
  places: readonly { to: string; label: string }[];
}

interface Entry extends Findable {
  key: string;
  right?: ReactNode;
  act: () => unknown;
}

export default function PaletteDialog({ onOpen, places }: PaletteProps) {
  const navigate = useNavigate();
  const [sought, setSought] = useState('');
  const { data: agents = [] } = useQuery(agentsQuery);
  const { data: teams = [] } = useQuery(teamsQuery);
  const runLists = useQueries({
    queries: teams.slice(0, TEAMS_WITH_RUNS_MAX).map(({ id }) => runsQuery(id)),
  });

  const go = (to: string) => navigate({ to });
  const groups: [string, Entry[], number][] = [
    ['Pages', places.map(({ to, label }) => ({ key: to, label, act: () => go(to) })), 12],
    [
      'Actions',
      [
        { key: 'new-agent', label: 'New agent', act: () => go('/agents/new') },
        { key: 'new-team', label: 'New team', act: () => go('/teams/new') },
        {
          key: 'demo',
          label: 'Start demo agent',
          act: () => startDemo().then((id) => go(`/agents/${id}`)),
        },
        ...(['system', 'light', 'dark'] as const).map((theme) => ({
          key: theme,
          label: `Theme: ${theme}`,
          also: 'appearance',
          act: () => setAppearance({ theme }),
        })),
        { key: 'sign-out', label: 'Sign out', also: 'log out', act: signOut },
      ],
      8,
    ],
    [
      'Agents',
      useMemo(
        () =>
          agents.map(({ id, name, status, preset }) => ({
            key: id,
            label: name,
            also: `${id} ${preset ?? ''} ${status}`,
            right: <Status status={status} />,
            act: () => navigate({ to: '/agents/$agent_id', params: { agent_id: id } }),
          })),
        [agents, navigate],
      ),
      8,
    ],
    [
      'Teams',
      teams.map(({ id, name }) => ({
        key: id,
        label: name,
        also: id,
        act: () => navigate({ to: '/teams/$team_id', params: { team_id: id } }),
      })),
      6,
    ],
    [
      'Runs',
      runLists.flatMap(({ data = [] }, at) =>
        data.map(({ id, number, team_id, status }) => ({
          key: id,
          label: `${teams[at]?.name ?? ''} · run ${number}`,
          also: `${id} ${status}`,
          right: <Status status={status} />,
          act: () => navigate({ to: '/teams/$team_id/runs/$run_id', params: { team_id, run_id: id } }),
        })),
      ),
      6,
    ],
  ];

  const choose = (entry: Entry) => {
    onOpen(false);
    Promise.resolve()
      .then(entry.act)
      .catch((error: unknown) => tell(entry.label, wordsOf(error)));
  };
  return (
    <Base.Root open onOpenChange={onOpen}>
      <Base.Portal>
        <Base.Backdrop className="fixed inset-0 z-40 bg-[#000]/40" />
        <Base.Popup
          aria-label="Search and commands"
          className="fixed inset-x-2 top-2 z-50 mx-auto flex max-h-[min(80dvh,520px)] max-w-[600px] flex-col rounded-xl border border-line bg-raised shadow-overlay outline-none sm:top-[12vh]"
        >
          <Command
            shouldFilter={false}
            loop
            vimBindings={false}
            label="Search and commands"
            className="flex min-h-0 flex-col"
          >
            <Command.Input
              value={sought}
              onValueChange={setSought}
              placeholder="Go to, find, or do…"
              className="h-11 w-full shrink-0 rounded-t-xl border-line border-b bg-transparent px-4 text-prose outline-none"
            />
            <Command.List className="scroll-y p-1">
              <Command.Empty className="px-3 py-6 text-center text-muted">
                Nothing is called so.
              </Command.Empty>
              {groups.map(([heading, entries, max]) => {
                const found = find(entries, sought, max);
                return (
                  found.length > 0 && (
                    <Command.Group
                      key={heading}
                      heading={heading}
                      className="[&_[cmdk-group-heading]]:px-3 [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-muted [&_[cmdk-group-heading]]:text-xs"
                    >
                      {found.map((entry) => (
                        <Command.Item
                          key={entry.key}
                          value={`${heading} ${entry.key}`}
                          onSelect={() => choose(entry)}
                          className="tap flex cursor-pointer items-center justify-between gap-3 rounded px-3 data-[selected=true]:bg-surface"
                        >
                          <span className="min-w-0 truncate">{entry.label}</span>
                          {entry.right}
                        </Command.Item>
                      ))}
                    </Command.Group>
                  )
                );
              })}
            </Command.List>
          </Command>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
