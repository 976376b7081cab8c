/** Where something is said to the agent. What is written stays until it is sent, whatever happens in between. */
import type { AvailableCommand } from '@agentclientprotocol/sdk';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { SendHorizontal } from 'lucide-react';
import { type KeyboardEvent, memo, useEffect, useId, useLayoutEffect, useRef, useState } from 'react';
import { call, newKey } from '../../../api/client.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { Button } from '../../../ui/button.tsx';
import { cx } from '../../../ui/cx.ts';
import { useDraft } from '../../../ui/drafts.ts';
import { inputClass } from '../../../ui/field.tsx';
import { MOD } from '../../../ui/keys.ts';
import { useOnline } from '../../../ui/online.ts';
import { Refused } from '../../../ui/states.tsx';
import { useAgentAct } from '../../agents/actions.ts';
import type { Suggestion } from './suggest.ts';
import { SuggestionList, useOffer } from './suggestions.tsx';

interface Said {
  text: string;
  key: string;
}

function saidOf(kept: string): Said | null {
  try {
    return kept === '' ? null : (JSON.parse(kept) as Said);
  } catch {
    return null;
  }
}

export const Composer = memo(function Composer({
  agent,
  commands,
  onSent,
}: {
  agent: AgentRecord;
  commands: readonly AvailableCommand[];
  onSent: () => void;
}) {
  const queries = useQueryClient();
  const id = useId();
  const online = useOnline();
  const [text, setText] = useDraft(`prompt.${agent.id}`);
  const act = useAgentAct(agent);
  const running = agent.status === 'running';
  const latest = useRef(text);
  latest.current = text;
  // What is on its way leaves the field at once, and comes back to it when it does not arrive, also after a reload.
  const [on_way, setOnWay] = useDraft(`prompt.${agent.id}.on-way`);
  // The same words, tried again after a failure, are said once.
  const failed = useRef<Said | null>(null);
  const takeBack = (said: Said) => {
    failed.current = said;
    setOnWay('');
    setText([said.text, latest.current].filter(Boolean).join('\n'));
  };
  const send = useMutation({
    mutationFn: ({ text, key }: Said) =>
      call('promptAgent', { params: { agent_id: agent.id }, body: { text }, idempotency_key: key }),
    onSuccess: () => {
      failed.current = null;
      setOnWay('');
      void queries.invalidateQueries({ queryKey: ['prompts', agent.id] });
      onSent();
    },
    onError: (_, said) => takeBack(said),
  });
  const left = useRef(on_way);
  useEffect(() => {
    const said = saidOf(left.current);
    left.current = '';
    if (said) takeBack(said);
  });
  const may = running && online && text.trim() !== '';
  const submit = () => {
    if (!may || send.isPending) return;
    const said = failed.current?.text === text ? failed.current : { text, key: newKey() };
    setOnWay(JSON.stringify(said));
    setText('');
    send.mutate(said);
  };

  const field = useRef<HTMLTextAreaElement>(null);
  // Null: nothing is to be offered, because nothing is written or somebody has closed the list.
  const [caret, setCaret] = useState<number | null>(null);
  const [at, setAt] = useState(0);
  const offer = useOffer(agent.id, commands, text, caret);
  const options = offer?.options ?? [];
  const chosen = Math.min(at, options.length - 1);
  const moved = useRef<number | null>(null);
  useLayoutEffect(() => {
    if (moved.current === null) return;
    field.current?.setSelectionRange(moved.current, moved.current);
    moved.current = null;
  });
  const choose = (one: Suggestion) => {
    setText(one.text);
    setCaret(null);
    setAt(0);
    moved.current = one.caret;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) {
      event.preventDefault();
      submit();
      return;
    }
    if (!offer) return;
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

  return (
    <form
      className="relative flex flex-col gap-1"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {offer && <SuggestionList id={`${id}-offer`} offer={offer} chosen={chosen} onChoose={choose} />}
      <label htmlFor={id} className="sr-only">
        Message to {agent.name}
      </label>
      <div className="flex items-end gap-2">
        <textarea
          id={id}
          ref={field}
          rows={1}
          value={text}
          dir="auto"
          placeholder={`Message…   ${commands.length > 0 ? '/ for commands, ' : ''}@ for files`}
          onChange={(event) => {
            setText(event.target.value);
            setCaret(event.target.selectionStart);
            setAt(0);
          }}
          onKeyDown={onKeyDown}
          onSelect={({ currentTarget }) => {
            if (caret !== null) setCaret(currentTarget.selectionStart);
          }}
          onBlur={() => setCaret(null)}
          aria-autocomplete="list"
          aria-controls={offer ? `${id}-offer` : undefined}
          aria-activedescendant={offer ? `${id}-offer-${chosen}` : undefined}
          aria-describedby={`${id}-why`}
          className={cx(inputClass, 'max-h-48 min-h-9 resize-none text-prose [field-sizing:content]')}
        />
        <Button
          type="submit"
          look="primary"
          busy={send.isPending}
          disabled={!may}
          icon={<SendHorizontal aria-hidden />}
          title={`Send (${MOD}+Enter)`}
        >
          {send.isPending ? 'Sending…' : 'Send'}
        </Button>
      </div>
      <p id={`${id}-why`} className="flex flex-wrap items-center md:min-h-5 gap-x-2 text-muted text-sm">
        {!online && <span>You are offline: this stays here until it can be sent.</span>}
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
        {online && running && (
          <span className="max-md:hidden">{MOD}+Enter sends, Enter begins a new line</span>
        )}
      </p>
      <Refused error={send.error} />
    </form>
  );
});
