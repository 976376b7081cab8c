/** Suggestions at the caret of the prompt field: commands of the agent, and files. */
import type { AvailableCommand } from '@agentclientprotocol/sdk';
import { type KeyboardEvent, useLayoutEffect, useRef, useState } from 'react';
import { chosenAt, type Suggestion } from './suggest.ts';
import { useSuggestions } from './suggestions.tsx';

export type Completion = ReturnType<typeof useCompletion>;

/** `field` has the props of the text area, and `onKeyDown` handles the keys of the list. */
export function useCompletion(
  agent_id: string,
  commands: readonly AvailableCommand[],
  text: string,
  setText: (text: string) => void,
) {
  const ref = useRef<HTMLTextAreaElement>(null);
  // Null: no suggestions, because the field is not being edited or the user has closed the list.
  const [caret, setCaret] = useState<number | null>(null);
  /** The key of the option that the user has selected. */
  const [key, setKey] = useState<string | null>(null);
  const suggestions = useSuggestions(agent_id, commands, text, caret);
  const options = suggestions?.options ?? [];
  const chosen = chosenAt(options, key);
  const move = (by: number) => setKey(options.at((chosen + by) % options.length)!.key);
  const moved = useRef<number | null>(null);
  useLayoutEffect(() => {
    if (moved.current === null) return;
    ref.current?.setSelectionRange(moved.current, moved.current);
    moved.current = null;
  });
  const choose = (item: Suggestion) => {
    setText(item.text);
    setCaret(null);
    setKey(null);
    moved.current = item.caret;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (!suggestions) return;
    const steps: Record<string, () => void> = {
      ArrowDown: () => move(1),
      ArrowUp: () => move(-1),
      Enter: () => choose(options[chosen]!),
      Tab: () => choose(options[chosen]!),
      Escape: () => setCaret(null),
    };
    const step = event.shiftKey ? undefined : steps[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    step();
  };
  const field = {
    ref,
    onChange: ({ target }: { target: HTMLTextAreaElement }) => {
      setText(target.value);
      setCaret(target.selectionStart);
      setKey(null);
    },
    onSelect: ({ currentTarget }: { currentTarget: HTMLTextAreaElement }) => {
      if (caret !== null) setCaret(currentTarget.selectionStart);
    },
    onBlur: () => setCaret(null),
  };
  /** Writes a character as if the user had typed it, which opens its suggestions. */
  const write = (char: '@' | '/') => {
    const box = ref.current;
    if (!box) return;
    box.focus();
    const at = char === '/' ? 0 : box.selectionStart;
    const before = text.slice(0, at);
    const added = char === '@' && /\S$/.test(before) ? ` ${char}` : char;
    setText(before + added + text.slice(char === '/' ? 0 : box.selectionEnd));
    setCaret(at + added.length);
    setKey(null);
    moved.current = at + added.length;
  };
  return { suggestions, chosen, choose, onKeyDown, field, write };
}
