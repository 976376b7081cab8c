/** The prompt field. Its text is a draft until it is sent, and returns to the field if sending fails. */
import type { AvailableCommand } from '@agentclientprotocol/sdk';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { SendHorizontal } from 'lucide-react';
import { type KeyboardEvent, memo, useEffect, useId, useLayoutEffect, useRef, useState } from 'react';
import { call, newKey } from '../../../api/client.ts';
import { keys } from '../../../api/keys.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { Button } from '../../../ui/button.tsx';
import { cx } from '../../../ui/cx.ts';
import { useDraft } from '../../../ui/drafts.ts';
import { inputClass } from '../../../ui/field.tsx';
import { MOD } from '../../../ui/keys.ts';
import { useOnline } from '../../../ui/online.ts';
import { ActionError } from '../../../ui/states.tsx';
import { useAgentAct } from '../../agents/actions.ts';
import type { Suggestion } from './suggest.ts';
import { SuggestionList, useSuggestions } from './suggestions.tsx';

export const Composer = memo(function Composer({
  agent,
  commands,
  onSent,
  onLeave,
}: {
  agent: AgentRecord;
  commands: readonly AvailableCommand[];
  onSent: () => void;
  /** Called on Esc. */
  onLeave: () => void;
}) {
  const id = useId();
  const online = useOnline();
  const { text, setText, send, is_sending, error } = usePrompt(agent.id, onSent);
  const completion = useCompletion(agent.id, commands, text, setText);
  const { suggestions, chosen } = completion;
  const ready = agent.status === 'running' && online && text.trim() !== '';
  const submit = () => {
    if (ready && !is_sending) send();
  };
  return (
    <form
      className="relative flex flex-col gap-1"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {suggestions && (
        <SuggestionList
          id={`${id}-suggestions`}
          suggestions={suggestions}
          chosen={chosen}
          onChoose={completion.choose}
        />
      )}
      <label htmlFor={id} className="sr-only">
        Prompt for {agent.name}
      </label>
      <div className="flex items-end gap-2">
        <textarea
          id={id}
          rows={1}
          value={text}
          dir="auto"
          placeholder={`Prompt…   ${commands.length > 0 ? '/ for commands, ' : ''}@ for files`}
          aria-autocomplete="list"
          aria-controls={suggestions ? `${id}-suggestions` : undefined}
          aria-activedescendant={suggestions ? `${id}-suggestions-${chosen}` : undefined}
          aria-describedby={`${id}-hint`}
          className={cx(inputClass, 'max-h-48 min-h-9 resize-none text-prose [field-sizing:content]')}
          {...completion.field}
          onKeyDown={(event) => {
            if (event.nativeEvent.isComposing) return;
            if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) {
              event.preventDefault();
              submit();
            } else if (event.key === 'Escape' && !suggestions) onLeave();
            else completion.onKeyDown(event);
          }}
        />
        <Button
          type="submit"
          variant="primary"
          busy={is_sending}
          disabled={!ready}
          icon={<SendHorizontal aria-hidden />}
          title={`Send (${MOD}+Enter)`}
        >
          {is_sending ? 'Sending…' : 'Send'}
        </Button>
      </div>
      <Hint id={`${id}-hint`} agent={agent} online={online} />
      <ActionError error={error} />
    </form>
  );
});

function Hint({ id, agent, online }: { id: string; agent: AgentRecord; online: boolean }) {
  const act = useAgentAct(agent);
  const running = agent.status === 'running';
  return (
    <p id={id} className="flex flex-wrap items-center gap-x-2 text-muted text-sm md:min-h-5">
      {!online && <span>You are offline. Your prompt is kept until you can send it.</span>}
      {online && !running && (
        <>
          <span>{agent.name} is not running.</span>
          <button
            type="button"
            disabled={act.isPending}
            onClick={() => act.mutate('start')}
            className="tap font-medium text-text underline"
          >
            {act.isPending || agent.activity === 'starting' ? 'Starting…' : 'Start'}
          </button>
        </>
      )}
      {online && running && <span className="max-md:hidden">{MOD}+Enter to send, Enter for a new line</span>}
    </p>
  );
}

interface Prompt {
  text: string;
  /** The idempotency key. */
  key: string;
}

function parsePrompt(stored: string): Prompt | null {
  try {
    return stored === '' ? null : (JSON.parse(stored) as Prompt);
  } catch {
    return null;
  }
}

function usePrompt(agent_id: string, onSent: () => void) {
  const queries = useQueryClient();
  const [text, setText] = useDraft(`prompt.${agent_id}`);
  const latest = useRef(text);
  latest.current = text;
  // A prompt leaves the field when it is sent. If sending fails, it returns to the field, even after a reload.
  const [in_flight, setInFlight] = useDraft(`prompt.${agent_id}.on-way`);
  // Sending the same text again after a failure reuses its key.
  const failed = useRef<Prompt | null>(null);
  const restore = (prompt: Prompt) => {
    failed.current = prompt;
    setInFlight('');
    setText([prompt.text, latest.current].filter(Boolean).join('\n'));
  };
  const sending = useMutation({
    mutationFn: ({ text, key }: Prompt) =>
      call('promptAgent', { params: { agent_id }, body: { text }, idempotency_key: key }),
    onSuccess: () => {
      failed.current = null;
      setInFlight('');
      void queries.invalidateQueries({ queryKey: keys.prompts(agent_id) });
      onSent();
    },
    onError: (_, prompt) => restore(prompt),
  });
  const left = useRef(in_flight);
  useEffect(() => {
    const prompt = parsePrompt(left.current);
    left.current = '';
    if (prompt) restore(prompt);
  });
  const send = () => {
    const prompt = failed.current?.text === text ? failed.current : { text, key: newKey() };
    setInFlight(JSON.stringify(prompt));
    setText('');
    sending.mutate(prompt);
  };
  return { text, setText, send, is_sending: sending.isPending, error: sending.error };
}

/** Suggestions at the caret: `field` has the props of the text area, and `onKeyDown` handles the keys of the list. */
function useCompletion(
  agent_id: string,
  commands: readonly AvailableCommand[],
  text: string,
  setText: (text: string) => void,
) {
  const ref = useRef<HTMLTextAreaElement>(null);
  // Null: no suggestions, because the field is not being edited or the user has closed the list.
  const [caret, setCaret] = useState<number | null>(null);
  const [at, setAt] = useState(0);
  const suggestions = useSuggestions(agent_id, commands, text, caret);
  const options = suggestions?.options ?? [];
  const chosen = Math.min(at, options.length - 1);
  const moved = useRef<number | null>(null);
  useLayoutEffect(() => {
    if (moved.current === null) return;
    ref.current?.setSelectionRange(moved.current, moved.current);
    moved.current = null;
  });
  const choose = (item: Suggestion) => {
    setText(item.text);
    setCaret(null);
    setAt(0);
    moved.current = item.caret;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (!suggestions) return;
    const steps: Record<string, () => void> = {
      ArrowDown: () => setAt((chosen + 1) % options.length),
      ArrowUp: () => setAt((chosen - 1 + options.length) % options.length),
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
      setAt(0);
    },
    onSelect: ({ currentTarget }: { currentTarget: HTMLTextAreaElement }) => {
      if (caret !== null) setCaret(currentTarget.selectionStart);
    },
    onBlur: () => setCaret(null),
  };
  return { suggestions, chosen, choose, onKeyDown, field };
}
