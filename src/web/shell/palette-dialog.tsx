/** The command palette: opens on what the page is about and what waits, and finds pages, agents, teams, runs and actions. */
import { Dialog as Base } from '@base-ui/react/dialog';
import { Command } from 'cmdk';
import { useState } from 'react';
import { escapeHidden } from '../../core/visible.ts';
import { errorMessage } from '../api/client.ts';
import type { Place } from '../feature.ts';
import { showToast } from '../ui/toast.tsx';
import { type Entry, type Group, useGroups } from './palette-entries.tsx';
import { find } from './palette-find.ts';

export interface PaletteProps {
  onOpen: (open: boolean) => void;
  places: readonly Place[];
}

export default function PaletteDialog({ onOpen, places }: PaletteProps) {
  const [query, setQuery] = useState('');
  const groups = useGroups(places);
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
              {groups.map((group) => (
                <Results key={group.heading} group={group} sought={query} onChoose={choose} />
              ))}
            </Command.List>
            {/* Not in the list, which has only options. */}
            <div role="status">
              <Command.Empty className="px-3 pt-4 pb-6 text-center text-muted">No results.</Command.Empty>
            </div>
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
      className="[&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:font-medium [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-muted [&_[cmdk-group-heading]]:text-xs"
    >
      {found.map((entry) => (
        <Command.Item
          key={entry.key}
          value={`${heading} ${entry.key}`}
          onSelect={() => onChoose(entry)}
          className="tap flex cursor-pointer items-center gap-2.5 rounded-md px-2.5 data-[selected=true]:bg-selected [&_svg]:size-4"
        >
          <span className="inline-flex size-4 shrink-0 items-center justify-center text-muted">
            {entry.icon}
          </span>
          <span dir="auto" className="min-w-0 flex-1 truncate text-left">
            {escapeHidden(entry.label)}
            {entry.detail && (
              <>
                {' '}
                <bdi className="ps-1 text-muted">{escapeHidden(entry.detail)}</bdi>
              </>
            )}
          </span>
          {entry.right && <span className="flex shrink-0 gap-1 text-muted text-sm">{entry.right}</span>}
        </Command.Item>
      ))}
    </Command.Group>
  );
}
