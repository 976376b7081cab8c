/** The form that sends mail in a run, as the user or as a member without an agent. */
import { useQueryClient } from '@tanstack/react-query';
import type { RefObject } from 'react';
import { useAct } from '../../api/act.ts';
import { call } from '../../api/client.ts';
import { keys as shared_keys } from '../../api/keys.ts';
import type { RunRecord } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { unlessSent, useDraft } from '../../ui/drafts.ts';
import { MessageArea } from '../../ui/message-area.tsx';
import { useOnline } from '../../ui/online.ts';
import { Select } from '../../ui/select.tsx';
import { ActionError } from '../../ui/states.tsx';
import { actorName } from './actors.ts';
import { keys } from './keys.ts';

/** The chosen sender and receiver. */
export interface MailAddresses {
  from?: string;
  to?: string;
}

export function MailComposer({
  run,
  senders,
  actors,
  shown,
  ends,
  onEnds,
  onUse,
  area,
}: {
  run: RunRecord;
  /** The actors that the user may send as; at least one. */
  senders: string[];
  actors: string[];
  /** The actor that the page shows: the receiver, unless the user has chosen another. */
  shown: string | undefined;
  ends: MailAddresses;
  onEnds: (ends: MailAddresses) => void;
  /** See `RunPanelProps`. The receiver must not change while the user writes. */
  onUse: () => void;
  area: RefObject<HTMLTextAreaElement | null>;
}) {
  const online = useOnline();
  const from = ends.from ?? senders[0]!;
  // The receiver of a reply may no longer take part in the run.
  const receivers = [...new Set([...actors, ...(ends.to === undefined ? [] : [ends.to])])];
  const others = receivers.filter((actor) => actor !== from);
  const to = [ends.to, shown, ...others].find((actor) => others.includes(actor!));
  const { text, setText, send } = useMail(run);
  const submit = () => {
    if (send.isPending || !online || to === undefined || text.trim() === '') return;
    send.mutate({ from_actor_id: from, to_actor_id: to, payload: { text } });
  };
  if (to === undefined) return null;
  return (
    <form
      onFocus={onUse}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      className="flex flex-col gap-2 border-line border-t p-3"
    >
      <AddressFields from={from} to={to} senders={senders} receivers={others} ends={ends} onEnds={onEnds} />
      <div className="flex items-end gap-2">
        <MessageArea ref={area} text={text} onText={setText} onSend={submit} />
        <Button
          type="submit"
          variant="primary"
          busy={send.isPending}
          disabled={!online || text.trim() === ''}
          title={online ? undefined : 'You are offline'}
        >
          {send.isPending ? 'Sending…' : 'Send'}
        </Button>
      </div>
      <ActionError error={send.error} />
    </form>
  );
}

/** The draft of a message, and the mutation that sends it. */
function useMail(run: RunRecord) {
  const [text, setText, last] = useDraft(`mail.${run.id}`);
  const queries = useQueryClient();
  const send = useAct(
    (body: { from_actor_id: string; to_actor_id: string; payload: { text: string } }, idempotency_key) =>
      call('sendMail', { body: { run_id: run.id, ...body }, idempotency_key }),
    (_mail, { payload }) => {
      // Keep the text if the user continued to type.
      setText(unlessSent(payload.text));
      void queries.invalidateQueries({ queryKey: keys.run_mail(run.id) });
      void queries.invalidateQueries({ queryKey: shared_keys.run_members(run.id) });
    },
    last,
  );
  return { text, setText, send };
}

function AddressFields({
  from,
  to,
  senders,
  receivers,
  ends,
  onEnds,
}: {
  from: string;
  to: string;
  senders: string[];
  receivers: string[];
  ends: MailAddresses;
  onEnds: (ends: MailAddresses) => void;
}) {
  return (
    <div className="flex flex-wrap items-center gap-2 text-muted">
      {senders.length > 1 && (
        <ActorField
          label="From"
          actors={senders}
          value={from}
          onChange={(actor) => onEnds({ ...ends, from: actor })}
        />
      )}
      <ActorField
        label="To"
        actors={receivers}
        value={to}
        onChange={(actor) => onEnds({ ...ends, to: actor })}
      />
    </div>
  );
}

/** A label and its field, which wrap together. */
function ActorField({
  label,
  actors,
  value,
  onChange,
}: {
  label: string;
  actors: string[];
  value: string;
  onChange: (actor: string) => void;
}) {
  return (
    <span className="inline-flex min-w-0 items-center gap-2 whitespace-nowrap">
      {label}
      <Select
        aria-label={label}
        value={value}
        onChange={onChange}
        choices={actors.map((actor) => ({ value: actor, label: actorName(actor) }))}
        className="max-w-40"
      />
    </span>
  );
}
