/** A person writes into a run's mail: as themselves or for a member without an agent, to whom, and what. Sent once. */
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { call } from '../../api/client.ts';
import type { RunRecord } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { useDraft } from '../../ui/drafts.ts';
import { MessageArea } from '../../ui/message-area.tsx';
import { useOnline } from '../../ui/online.ts';
import { Select } from '../../ui/select.tsx';
import { Refused } from '../../ui/states.tsx';
import { useAct } from './act.ts';
import { actorName } from './facts.ts';

export function MailComposer({
  run,
  voices,
  actors,
  answered,
}: {
  run: RunRecord;
  /** Whom the person may write as, never nobody. */
  voices: string[];
  actors: string[];
  /** The message whose answer this is; another object each time that somebody asks for it. */
  answered: { from_actor_id: string; to_actor_id: string } | null;
}) {
  const [text, setText] = useDraft(`mail.${run.id}`);
  const [chosen, setChosen] = useState<{ from?: string; to?: string }>({});
  const area = useRef<HTMLTextAreaElement>(null);
  const queries = useQueryClient();
  const online = useOnline();
  useEffect(() => {
    if (answered === null) return;
    setChosen({ from: answered.to_actor_id, to: answered.from_actor_id });
    area.current?.focus();
  }, [answered]);
  const from = chosen.from ?? voices[0]!;
  const receivers = actors.includes(chosen.to ?? '')
    ? actors
    : [...actors, ...(chosen.to ? [chosen.to] : [])];
  const others = receivers.filter((actor) => actor !== from);
  const to = chosen.to !== undefined && chosen.to !== from ? chosen.to : others[0];
  const written = useRef(text);
  written.current = text;

  const send = useAct(
    (body: { from_actor_id: string; to_actor_id: string; payload: { text: string } }, idempotency_key) =>
      call('sendMail', { body: { run_id: run.id, ...body }, idempotency_key }),
    (_mail, { payload }) => {
      // What was written on meanwhile stays.
      if (written.current === payload.text) setText('');
      void queries.invalidateQueries({ queryKey: ['run-mail', run.id] });
      void queries.invalidateQueries({ queryKey: ['run-members', run.id] });
    },
  );
  const submit = () => {
    if (send.isPending || !online || to === undefined || text.trim() === '') return;
    send.mutate({ from_actor_id: from, to_actor_id: to, payload: { text } });
  };
  if (to === undefined) return null;
  const choices = (ids: string[]) => ids.map((value) => ({ value, label: actorName(value) }));
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      className="flex flex-col gap-2 border-line border-t p-3"
    >
      <div className="flex flex-wrap items-center gap-2 text-muted">
        {voices.length > 1 && (
          <>
            from
            <Select
              aria-label="From"
              value={from}
              onChange={(actor) => setChosen((now) => ({ ...now, from: actor }))}
              choices={choices(voices)}
              className="max-w-40"
            />
          </>
        )}
        to
        <Select
          aria-label="To"
          value={to}
          onChange={(actor) => setChosen((now) => ({ ...now, to: actor }))}
          choices={choices(others)}
          className="max-w-40"
        />
      </div>
      <div className="flex items-end gap-2">
        <MessageArea ref={area} text={text} onText={setText} onSend={submit} />
        <Button
          type="submit"
          look="primary"
          busy={send.isPending}
          disabled={!online || text.trim() === ''}
          title={online ? undefined : 'You are offline'}
        >
          {send.isPending ? 'Sending…' : 'Send'}
        </Button>
      </div>
      <Refused error={send.error} />
    </form>
  );
}
