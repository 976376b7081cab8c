/** The list of suggestions below the prompt field. The field keeps the focus and handles the keys. */
import type { AvailableCommand } from '@agentclientprotocol/sdk';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { escapeHidden } from '../../../../core/visible.ts';
import { filesQuery } from '../../../api/queries.ts';
import { cx } from '../../../ui/cx.ts';
import { findFileWord, type Suggestion, suggestCommands, suggestFiles } from './suggest.ts';

/** How long the text must stay the same before files are searched. */
const QUERY_DELAY_MS = 120;

export interface Suggestions {
  label: string;
  options: readonly Suggestion[];
}

/** `caret`: null while the field is not being edited. */
export function useSuggestions(
  agent_id: string,
  commands: readonly AvailableCommand[],
  text: string,
  caret: number | null,
): Suggestions | null {
  const written = caret === null ? null : findFileWord(text, caret);
  const word = written?.word ?? null;
  const [query, setQuery] = useState<string | null>(null);
  useEffect(() => {
    const timer = setTimeout(() => setQuery(word), QUERY_DELAY_MS);
    return () => clearTimeout(timer);
  }, [word]);
  const { data } = useQuery({
    ...filesQuery(agent_id, query ?? ''),
    enabled: query !== null && word !== null,
    placeholderData: keepPreviousData,
  });
  if (caret === null) return null;
  const options = written
    ? suggestFiles(text, caret, written, data?.paths ?? [])
    : suggestCommands(text, commands);
  if (options.length === 0) return null;
  return { label: written ? 'Files in the agent’s folder' : 'Agent commands', options };
}

export function SuggestionList({
  id,
  suggestions,
  chosen,
  onChoose,
}: {
  id: string;
  suggestions: Suggestions;
  chosen: number;
  onChoose: (suggestion: Suggestion) => void;
}) {
  return (
    <div
      id={id}
      role="listbox"
      aria-label={suggestions.label}
      className="scroll-y absolute bottom-full left-0 z-20 mb-1 max-h-[min(16rem,35dvh)] w-full max-w-lg rounded-lg border border-line bg-raised p-1 shadow-overlay"
    >
      {suggestions.options.map((option, at) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys
        // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field
        <div
          key={option.key}
          id={`${id}-${at}`}
          role="option"
          aria-selected={at === chosen}
          ref={(element) => {
            if (at === chosen) element?.scrollIntoView({ block: 'nearest' });
          }}
          // The field keeps the focus.
          onPointerDown={(event) => event.preventDefault()}
          onClick={() => onChoose(option)}
          className={cx('tap flex cursor-pointer gap-2 rounded px-2 py-1', at === chosen && 'bg-surface')}
        >
          <span className="max-w-full shrink-0 truncate font-medium">{escapeHidden(option.label)}</span>
          <span className="min-w-0 truncate text-muted">{escapeHidden(option.note)}</span>
        </div>
      ))}
    </div>
  );
}
