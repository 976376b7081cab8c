/** Queued prompts, which can be edited or removed until their turn begins. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Pencil, X } from 'lucide-react';
import { memo, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { Problem } from '../../../../core/problem.ts';
import type { LastAttempt } from '../../../api/act-key.ts';
import { call, newKey } from '../../../api/client.ts';
import { keys } from '../../../api/keys.ts';
import { type AgentRecord, promptsQuery } from '../../../api/queries.ts';
import { currentPrompt } from '../../../api/turns.ts';
import { Button, IconButton } from '../../../ui/button.tsx';
import { useFields } from '../../../ui/drafts.ts';
import { inputClass } from '../../../ui/field.tsx';
import { useTouch } from '../../../ui/media.ts';
import { ActionError } from '../../../ui/states.tsx';
import { Truncated } from '../../../ui/truncated.tsx';
import { useCancelTurn } from '../turn.ts';
import { type Block, promptText, withText } from './prompt-content.ts';

const AGAIN_MS = 15_000;

/** `turns`: a text that changes whenever a turn may have begun or ended. */
export const Queue = memo(function Queue({ agent, turns }: { agent: AgentRecord; turns: string }) {
  const queries = useQueryClient();
  const running = agent.status === 'running';
  const { data: prompts } = useQuery({
    ...promptsQuery(agent.id),
    // Prompts that other users queue are not part of any stream.
    refetchInterval: agent.activity === 'working' ? AGAIN_MS : false,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: read again when one of these changes
  useEffect(() => {
    void queries.invalidateQueries({ queryKey: keys.prompts(agent.id) });
  }, [queries, agent.id, turns, running]);
  const [opened, setOpened] = useState<Edited>(NONE);
  const [draft, setDraft, last] = useFields<Edited>(`queued.${agent.id}`, NONE);
  const latest = useRef(draft);
  latest.current = draft;
  const { list, refocus } = useRefocus();
  if (!prompts) return null;
  const is_changed = draft.prompt_id !== '';
  const edited = is_changed ? draft : opened;
  const waiting: Edited[] = prompts
    .filter(({ state }) => state === 'queued')
    .map(({ id, content }) => ({ prompt_id: id, text: promptText(content) }));
  // A prompt that is being edited stays here, even if its turn has begun meanwhile.
  const is_sent = edited.prompt_id !== '' && !waiting.some(({ prompt_id }) => prompt_id === edited.prompt_id);
  const shown = is_sent ? [edited, ...waiting] : waiting;
  if (shown.length === 0) return null;
  const close = () => {
    setOpened(NONE);
    setDraft(null);
    refocus(edited.prompt_id);
  };
  /** Keeps what was typed while it was being saved. */
  const onSaved = (saved: Edited) => {
    const rest = (now: Edited) => (isUnsaved(now, saved) ? now : null);
    setDraft(rest);
    if (rest(latest.current) !== null) return;
    setOpened(NONE);
    refocus(saved.prompt_id);
  };
  return (
    <ul ref={list} aria-label="Queued prompts" className="flex max-h-60 flex-col gap-1 overflow-y-auto">
      {shown.map((prompt, at) => (
        <li
          key={prompt.prompt_id}
          data-prompt={prompt.prompt_id}
          className="min-w-0 rounded-md border border-line px-2 text-sm"
        >
          {edited.prompt_id === prompt.prompt_id ? (
            <Editor
              agent_id={agent.id}
              edited={edited}
              is_sent={is_sent}
              last={last}
              is_opened={opened.prompt_id === edited.prompt_id}
              onText={(text) => setDraft({ ...edited, text })}
              onSaved={onSaved}
              onClose={close}
            />
          ) : (
            <Waiting
              agent_id={agent.id}
              prompt={prompt}
              // Opening another one would lose the change.
              onEdit={is_changed ? undefined : () => setOpened(prompt)}
              onRemoved={() => refocus((shown[at + 1] ?? shown[at - 1])?.prompt_id)}
            >
              {at === 0 && <SendNow agent={agent} turn={currentPrompt(prompts)} />}
            </Waiting>
          )}
        </li>
      ))}
    </ul>
  );
});

interface Edited extends Record<string, string> {
  prompt_id: string;
  text: string;
}

const NONE: Edited = { prompt_id: '', text: '' };

function isUnsaved(draft: Edited, saved: Edited): boolean {
  return draft.prompt_id !== '' && (draft.prompt_id !== saved.prompt_id || draft.text !== saved.text);
}

/** Moves the focus to a prompt in the list, or else to the field for a new one, if the user has not moved it meanwhile. */
function useRefocus() {
  const list = useRef<HTMLUListElement>(null);
  const is_touch = useTouch();
  const [wanted, setWanted] = useState<{ prompt_id: string | undefined } | null>(null);
  useEffect(() => {
    const { activeElement, body } = document;
    if (wanted === null || (activeElement !== body && !list.current?.contains(activeElement))) return;
    const prompt = list.current?.querySelector<HTMLElement>(
      `[data-prompt="${wanted.prompt_id}"] [data-edit]`,
    );
    // On a touch screen, focusing the field would open the keyboard.
    (prompt ?? (is_touch ? null : document.querySelector<HTMLElement>('[data-prompt-field]')))?.focus();
    setWanted(null);
  }, [wanted, is_touch]);
  return { list, refocus: (prompt_id: string | undefined) => setWanted({ prompt_id }) };
}

/** The first queued prompt is sent when the turn ends. */
function SendNow({ agent, turn }: { agent: AgentRecord; turn: string | null }) {
  const { open, cancelling, cancel } = useCancelTurn(agent, turn);
  if (!open) return null;
  return (
    <Button variant="quiet" busy={cancelling} onClick={cancel} title="Cancels the turn, then sends">
      {cancelling ? 'Cancelling…' : 'Send now'}
    </Button>
  );
}

function Waiting({
  agent_id,
  prompt,
  onEdit,
  onRemoved,
  children,
}: {
  agent_id: string;
  prompt: Edited;
  /** Absent while another one is changed. */
  onEdit: (() => void) | undefined;
  onRemoved: () => void;
  children: ReactNode;
}) {
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: () => call('deletePrompt', { params: { agent_id, prompt_id: prompt.prompt_id } }),
    onSuccess: onRemoved,
    onSettled: () => queries.invalidateQueries({ queryKey: keys.prompts(agent_id) }),
  });
  return (
    <>
      <div className="flex min-w-0 items-center gap-2">
        <span className="shrink-0 text-muted">queued</span>
        <Truncated className="min-w-0 flex-1" title={prompt.text}>
          {prompt.text}
        </Truncated>
        {children}
        <IconButton
          label="Edit prompt"
          icon={<Pencil aria-hidden />}
          data-edit
          disabled={!onEdit}
          onClick={onEdit}
        />
        <IconButton
          label="Remove prompt"
          icon={<X aria-hidden />}
          busy={remove.isPending}
          onClick={() => remove.mutate()}
        />
      </div>
      <ActionError error={remove.error} />
    </>
  );
}

/** The content of the prompt; empty if somebody has removed it. */
async function readContent(agent_id: string, prompt_id: string): Promise<readonly Block[]> {
  try {
    return (await call('getPrompt', { params: { agent_id, prompt_id } })).content;
  } catch (error) {
    if (error instanceof Problem && error.code === 'prompt_not_found') return [];
    throw error;
  }
}

/** Once the turn of the prompt has begun, the edited text can be sent as a new prompt. */
function Editor({
  agent_id,
  edited,
  is_sent,
  last,
  is_opened,
  onText,
  onSaved,
  onClose,
}: {
  agent_id: string;
  edited: Edited;
  is_sent: boolean;
  last: LastAttempt;
  /** The user has just opened it. Otherwise, it is a draft. */
  is_opened: boolean;
  onText: (text: string) => void;
  onSaved: (saved: Edited) => void;
  onClose: () => void;
}) {
  const queries = useQueryClient();
  const id = useId();
  const save = useMutation({
    mutationFn: async (edited: Edited) => {
      const { prompt_id, text } = edited;
      const body = { content: withText(await readContent(agent_id, prompt_id), text) };
      if (is_sent)
        await call('promptAgent', { params: { agent_id }, body, idempotency_key: last.of(edited, newKey) });
      else await call('editPrompt', { params: { agent_id, prompt_id }, body });
    },
    onSuccess: (_, saved) => {
      last.forget(saved);
      onSaved(saved);
    },
    onSettled: () => queries.invalidateQueries({ queryKey: keys.prompts(agent_id) }),
  });
  return (
    <form
      className="flex flex-col gap-1 py-1"
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate(edited);
      }}
    >
      <label htmlFor={id} className="text-muted">
        {is_sent ? 'The original prompt was already sent. Send this as a new prompt?' : 'Queued prompt'}
      </label>
      <textarea
        id={id}
        dir="auto"
        rows={3}
        // biome-ignore lint/a11y/noAutofocus: the user asked for this field
        autoFocus={is_opened}
        value={edited.text}
        onChange={(event) => onText(event.target.value)}
        className={inputClass}
      />
      <ActionError error={save.error} />
      <span className="flex justify-end gap-2">
        <Button variant="quiet" onClick={onClose}>
          {is_sent ? 'Discard' : 'Cancel'}
        </Button>
        <Button type="submit" busy={save.isPending} disabled={edited.text.trim() === ''}>
          {is_sent ? 'Send' : 'Save'}
        </Button>
      </span>
    </form>
  );
}
