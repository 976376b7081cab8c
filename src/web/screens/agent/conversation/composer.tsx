/** Where something is said to the agent. What is written stays until it is sent, whatever happens in between. */
import type { AvailableCommand } from '@agentclientprotocol/sdk';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { SendHorizontal } from 'lucide-react';
import { type KeyboardEvent, memo, useEffect, useId, useRef, useState } from 'react';
import { call, newKey, wordsOf } from '../../../api/client.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { visible } from '../../../prose/visible.ts';
import { MOD } from '../../../shell/keys.ts';
import { Button } from '../../../ui/button.tsx';
import { cx } from '../../../ui/cx.ts';
import { useDraft } from '../../../ui/drafts.ts';
import { inputClass } from '../../../ui/field.tsx';
import { useOnline } from '../../../ui/online.ts';
import { useAgentAct } from '../../agents/actions.ts';
import { commandsFor, written } from './commands.ts';

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

  const [closed, setClosed] = useState(false);
  const [at, setAt] = useState(0);
  const offered = closed ? null : commandsFor(text, commands);
  const chosen = offered ? Math.min(at, offered.length - 1) : 0;
  const choose = (command: AvailableCommand) => {
    setText(written(command));
    setAt(0);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) {
      event.preventDefault();
      submit();
      return;
    }
    if (!offered) return;
    const steps: Record<string, () => void> = {
      ArrowDown: () => setAt((chosen + 1) % offered.length),
      ArrowUp: () => setAt((chosen - 1 + offered.length) % offered.length),
      Enter: () => choose(offered[chosen]!),
      Tab: () => choose(offered[chosen]!),
      Escape: () => setClosed(true),
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
      {offered && <CommandList id={`${id}-commands`} commands={offered} chosen={chosen} onChoose={choose} />}
      <label htmlFor={id} className="sr-only">
        Message to {agent.name}
      </label>
      <div className="flex items-end gap-2">
        <textarea
          id={id}
          rows={1}
          value={text}
          dir="auto"
          placeholder={commands.length > 0 ? 'Message…   / for commands' : 'Message…'}
          onChange={(event) => {
            setText(event.target.value);
            setClosed(false);
            setAt(0);
          }}
          onKeyDown={onKeyDown}
          aria-autocomplete={commands.length > 0 ? 'list' : undefined}
          aria-controls={offered ? `${id}-commands` : undefined}
          aria-activedescendant={offered ? `${id}-commands-${chosen}` : undefined}
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
              {act.isPending || agent.pending === 'start' ? 'Starting…' : 'Start'}
            </button>
          </>
        )}
        {online && running && (
          <span className="max-md:hidden">{MOD}+Enter sends, Enter begins a new line</span>
        )}
      </p>
      {send.isError && (
        <p role="alert" className="text-failed text-sm">
          {wordsOf(send.error)}
        </p>
      )}
    </form>
  );
});

function CommandList({
  id,
  commands,
  chosen,
  onChoose,
}: {
  id: string;
  commands: readonly AvailableCommand[];
  chosen: number;
  onChoose: (command: AvailableCommand) => void;
}) {
  return (
    <div
      id={id}
      role="listbox"
      aria-label="Commands of the agent"
      className="scroll-y absolute bottom-full left-0 z-20 mb-1 max-h-64 w-full max-w-lg rounded-lg border border-line bg-raised p-1 shadow-overlay"
    >
      {commands.map((command, at) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the field that it belongs to has the keys
        // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field
        <div
          key={command.name}
          id={`${id}-${at}`}
          role="option"
          aria-selected={at === chosen}
          ref={(element) => {
            if (at === chosen) element?.scrollIntoView({ block: 'nearest' });
          }}
          // The field keeps the focus.
          onPointerDown={(event) => event.preventDefault()}
          onClick={() => onChoose(command)}
          className={cx('tap flex cursor-pointer gap-2 rounded px-2 py-1', at === chosen && 'bg-surface')}
        >
          <span className="shrink-0 font-medium">/{visible(command.name)}</span>
          <span className="min-w-0 truncate text-muted">
            {visible(String(command.description ?? ''))}
            {command.input && ` · ${visible(String(command.input.hint ?? ''))}`}
          </span>
        </div>
      ))}
    </div>
  );
}
