/** The prompt field: the text, and below it the agent's mode and model, what its context holds, and the button that sends. */
import type { AvailableCommand } from '@agentclientprotocol/sdk';
import { AtSign, Slash } from 'lucide-react';
import { type KeyboardEvent, memo, useId } from 'react';
import type { Settings } from '../../../../acp/transcript/settings.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { appearance } from '../../../shell/appearance.ts';
import { IconButton } from '../../../ui/button.tsx';
import { cx } from '../../../ui/cx.ts';
import { isComposing, isModEnter } from '../../../ui/keys.ts';
import { useOnline } from '../../../ui/online.ts';
import { ActionError } from '../../../ui/states.tsx';
import { costText, usedPercent } from '../../../ui/usage.ts';
import { useAgentAct } from '../../agents/actions.ts';
import { hasOpenTurn } from '../turn.ts';
import { PromptSettings } from './prompt-settings.tsx';
import { SendButton } from './send-button.tsx';
import { SuggestionList } from './suggestions.tsx';
import { type Completion, useCompletion } from './use-completion.ts';
import { usePrompt } from './use-prompt.ts';

export const Composer = memo(function Composer({
  agent,
  commands,
  modes,
  options,
  usage,
  onSent,
  onLeave,
}: {
  agent: AgentRecord;
  commands: readonly AvailableCommand[];
  modes: Settings['modes'];
  options: Settings['config_options'];
  usage: Settings['usage'];
  onSent: () => void;
  /** Called on Esc. */
  onLeave: () => void;
}) {
  const id = useId();
  const online = useOnline();
  const { text, setText, send, is_sending, error } = usePrompt(agent.id, onSent);
  const completion = useCompletion(agent.id, commands, text, setText);
  const { suggestions, chosen } = completion;
  const running = agent.status === 'running';
  const ready = running && online && text.trim() !== '' && !is_sending;
  const submit = () => {
    if (ready) send();
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
      <div className="rounded-lg border border-control-line bg-ground focus-within:border-accent">
        <PromptField {...{ id, agent, completion }} value={text} onSubmit={submit} onLeave={onLeave} />
        <div className="flex min-w-0 items-center gap-0.5 px-1.5 pb-1.5">
          <PromptSettings agent={agent} modes={modes} options={options} />
          <Inserts
            has_commands={commands.length > 0}
            is_empty={text.trim() === ''}
            write={completion.write}
          />
          <span className="min-w-1 flex-1" />
          <UsageText usage={usage} />
          <SendButton
            agent={agent}
            queues={hasOpenTurn(agent)}
            is_empty={text.trim() === ''}
            busy={is_sending}
            disabled={!ready}
            onSendNow={() => send({ now: true })}
          />
        </div>
      </div>
      <Hint id={`${id}-hint`} agent={agent} online={online} />
      <ActionError error={error} />
    </form>
  );
});

/** The text. Its height follows its lines. */
function PromptField({
  id,
  agent,
  completion,
  value,
  onSubmit,
  onLeave,
}: {
  id: string;
  agent: AgentRecord;
  completion: Completion;
  value: string;
  onSubmit: () => void;
  onLeave: () => void;
}) {
  const { suggestions, chosen } = completion;
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (isComposing(event.nativeEvent)) return;
    if (event.key === 'Escape' && !suggestions) onLeave();
    else if (suggestions && !isModEnter(event.nativeEvent)) completion.onKeyDown(event);
    else if (isModEnter(event.nativeEvent) || isSendingEnter(event)) {
      event.preventDefault();
      onSubmit();
    }
  };
  return (
    <textarea
      id={id}
      data-prompt-field
      rows={2}
      value={value}
      dir="auto"
      placeholder={`Message ${agent.name}`}
      aria-autocomplete="list"
      aria-controls={suggestions ? `${id}-suggestions` : undefined}
      aria-activedescendant={suggestions ? `${id}-suggestions-${chosen}` : undefined}
      aria-describedby={`${id}-hint`}
      className="block max-h-48 w-full resize-none rounded-lg bg-transparent px-3 pt-2 text-prose outline-none [field-sizing:content] placeholder:truncate"
      {...completion.field}
      onKeyDown={onKeyDown}
    />
  );
}

/** Buttons that write the characters which open suggestions. */
function Inserts({
  has_commands,
  is_empty,
  write,
}: {
  has_commands: boolean;
  is_empty: boolean;
  write: (char: '@' | '/') => void;
}) {
  return (
    <>
      <IconButton label="Mention a file (@)" icon={<AtSign aria-hidden />} onClick={() => write('@')} />
      {has_commands && (
        <IconButton
          label="Use a command (/)"
          icon={<Slash aria-hidden />}
          disabled={!is_empty}
          className={cx(!is_empty && 'max-sm:hidden')}
          onClick={() => write('/')}
        />
      )}
    </>
  );
}

/** On a touch screen, Enter always starts a new line: its keyboard has no Shift+Enter. */
function isSendingEnter({ key, shiftKey, altKey }: KeyboardEvent): boolean {
  if (key !== 'Enter' || shiftKey || altKey) return false;
  return appearance().enter_sends && !matchMedia('(pointer: coarse)').matches;
}

/** `61% · $0.42`; the side panel has more. */
function UsageText({ usage }: { usage: Settings['usage'] }) {
  if (usage === null || usage.size <= 0) return null;
  const cost = costText(usage.cost);
  return (
    <span
      className="mr-1.5 whitespace-nowrap text-muted text-sm tabular-nums max-sm:hidden"
      title={`${usage.used.toLocaleString()} of ${usage.size.toLocaleString()} tokens of context`}
    >
      {usedPercent(usage)}%{cost !== null && ` · ${cost}`}
    </span>
  );
}

/** Why nothing can be sent. */
function Hint({ id, agent, online }: { id: string; agent: AgentRecord; online: boolean }) {
  const act = useAgentAct(agent);
  if (!online) {
    return (
      <p id={id} className="text-muted text-sm">
        You are offline. Your prompt is kept until you can send it.
      </p>
    );
  }
  if (agent.status === 'running') return null;
  return (
    <p id={id} className="flex flex-wrap items-center gap-x-2 text-muted text-sm">
      <span>{agent.name} is not running.</span>
      <button
        type="button"
        disabled={act.isPending}
        onClick={() => act.mutate('start')}
        className="tap font-medium text-text underline"
      >
        {act.isPending || agent.activity === 'starting' ? 'Starting…' : 'Start'}
      </button>
    </p>
  );
}
