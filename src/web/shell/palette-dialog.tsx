/** The command palette: finds pages, agents, teams, runs and actions. */
import { Dialog as Base } from '@base-ui/react/dialog';
import { useQueries, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Command } from 'cmdk';
import { type ReactNode, useMemo, useState } from 'react';
import { errorMessage } from '../api/client.ts';
import { agentsQuery, runsQuery, teamsQuery } from '../api/queries.ts';
import { signOut } from '../api/sign-out.ts';
import { Status } from '../ui/status.tsx';
import { showToast } from '../ui/toast.tsx';
import { setAppearance } from './appearance.ts';
import { type Findable, find } from './palette-find.ts';
import { startDemo } from './start-agent.ts';

/** How many teams' runs are searched, the newest teams first. */
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

interface Group {
  heading: string;
  entries: readonly Entry[];
  /** The most entries shown. */
  max: number;
}

export default function PaletteDialog({ onOpen, places }: PaletteProps) {
  const [query, setQuery] = useState('');
  const groups: Group[] = [...usePages(places), ...useRecords()];
  const choose = (entry: Entry) => {
    onOpen(false);
    Promise.resolve()
      .then(entry.act)
      .catch((error: unknown) => showToast(entry.label, errorMessage(error)));
  };
  return (
    <Base.Root open onOpenChange={onOpen}>
      <Base.Portal>
        <Base.Backdrop className="fixed inset-0 z-40 bg-[#000]/40" />
        <Base.Popup
          aria-label="Search and commands"
          className="fixed inset-x-2 top-2 z-50 mx-auto flex max-h-[min(80dvh,520px)] max-w-[600px] flex-col rounded-xl border border-line bg-raised shadow-overlay outline-none data-open:animate-enter sm:top-[12vh]"
        >
          <Command
            shouldFilter={false}
            loop
            vimBindings={false}
            label="Search and commands"
            className="flex min-h-0 flex-col"
          >
            <Command.Input
              value={query}
              onValueChange={setQuery}
              placeholder="Search pages, agents and actions…"
              className="h-11 w-full shrink-0 rounded-t-xl border-line border-b bg-transparent px-4 text-prose outline-none"
            />
            <Command.List className="scroll-y p-1">
              <Command.Empty className="px-3 py-6 text-center text-muted">No results.</Command.Empty>
              {groups.map((group) => (
                <Results key={group.heading} group={group} sought={query} onChoose={choose} />
              ))}
            </Command.List>
          </Command>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}

function Results({
  group: { heading, entries, max },
  sought: query,
  onChoose,
}: {
  group: Group;
  sought: string;
  onChoose: (entry: Entry) => void;
}) {
  const found = find(entries, query, max);
  if (found.length === 0) return null;
  return (
    <Command.Group
      heading={heading}
      className="[&_[cmdk-group-heading]]:px-3 [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-muted [&_[cmdk-group-heading]]:text-xs"
    >
      {found.map((entry) => (
        <Command.Item
          key={entry.key}
          value={`${heading} ${entry.key}`}
          onSelect={() => onChoose(entry)}
          className="tap flex cursor-pointer items-center justify-between gap-3 rounded px-3 data-[selected=true]:bg-surface"
        >
          <span className="min-w-0 truncate">{entry.label}</span>
          {entry.right}
        </Command.Item>
      ))}
    </Command.Group>
  );
}

function usePages(places: PaletteProps['places']): Group[] {
  const navigate = useNavigate();
  const go = (to: string) => navigate({ to });
  const pages = places.map(({ to, label }) => ({ key: to, label, act: () => go(to) }));
  const actions: Entry[] = [
    { key: 'new-agent', label: 'New agent', act: () => go('/agents/new') },
    { key: 'new-team', label: 'New team', act: () => go('/teams/new') },
    { key: 'demo', label: 'Start demo agent', act: () => startDemo().then((id) => go(`/agents/${id}`)) },
    ...(['system', 'light', 'dark'] as const).map((theme) => ({
      key: theme,
      label: `Theme: ${theme}`,
      also: 'appearance',
      act: () => setAppearance({ theme }),
    })),
    { key: 'sign-out', label: 'Sign out', also: 'log out', act: signOut },
  ];
  return [
    { heading: 'Pages', entries: pages, max: 12 },
    { heading: 'Actions', entries: actions, max: 8 },
  ];
}

/** Agents, teams and runs. */
function useRecords(): Group[] {
  const navigate = useNavigate();
  const { data: agents } = useQuery(agentsQuery);
  const { data: teams = [] } = useQuery(teamsQuery);
  const runs = useQueries({
    queries: teams.slice(0, TEAMS_WITH_RUNS_MAX).map(({ id }) => runsQuery(id)),
  });
  const agent_entries = useMemo(
    () =>
      (agents ?? []).map(({ id, name, status, preset }) => ({
        key: id,
        label: name,
        also: `${id} ${preset ?? ''} ${status}`,
        right: <Status status={status} />,
        act: () => navigate({ to: '/agents/$agent_id', params: { agent_id: id } }),
      })),
    [agents, navigate],
  );
  const team_entries = teams.map(({ id, name }) => ({
    key: id,
    label: name,
    also: id,
    act: () => navigate({ to: '/teams/$team_id', params: { team_id: id } }),
  }));
  const run_entries = runs.flatMap(({ data = [] }, at) =>
    data.map(({ id, number, team_id, status }) => ({
      key: id,
      label: `${teams[at]?.name ?? ''} · run ${number}`,
      also: `${id} ${status}`,
      right: <Status status={status} />,
      act: () => navigate({ to: '/teams/$team_id/runs/$run_id', params: { team_id, run_id: id } }),
    })),
  );
  return [
    { heading: 'Agents', entries: agent_entries, max: 8 },
    { heading: 'Teams', entries: team_entries, max: 6 },
    { heading: 'Runs', entries: run_entries, max: 6 },
  ];
}
