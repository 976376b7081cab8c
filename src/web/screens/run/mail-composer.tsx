/** A person writes into a run's mail: as themselves or for a member without an agent, to whom, and what. Sent once. */
import { useQueryClient } from '@tanstack/react-query';
import { type RefObject, useRef } from 'react';
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

/** Who writes, and to whom, as far as somebody has chosen. */
export interface Ends {
  from?: string;
  to?: string;
}

export function MailComposer({
  run,
  voices,
  actors,
  ends,
  onEnds,
  area,
}: {
  run: RunRecord;
  /** Whom the person may write as, never nobody. */
  voices: string[];
  actors: string[];
  ends: Ends;
  onEnds: (ends: Ends) => void;
  area: RefObject<HTMLTextAreaElement | null>;
}) {
  const [text, setText] = useDraft(`mail.${run.id}`);
  const queries = useQueryClient();
  const online = useOnline();
  const from = ends.from ?? voices[0]!;
  // Who is answered may be nobody of whom the run knows any more.
  const receivers = [...new Set([...actors, ...(ends.to === undefined ? [] : [ends.to])])];
  const others = receivers.filter((actor) => actor !== from);
  const to = ends.to === from ? others[0] : (ends.to ?? others[0]);
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
              onChange={(actor) => onEnds({ ...ends, from: actor })}
              choices={choices(voices)}
              className="max-w-40"
            />
          </>
        )}
        to
        <Select
          aria-label="To"
          value={to}
          onChange={(actor) => onEnds({ ...ends, to: actor })}
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
