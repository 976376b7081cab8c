/** Rejecting with a message: the agent gets both, or neither. */
import { type KeyboardEvent, useEffect, useId } from 'react';
import type { Option } from '../../acp/transcript/items.ts';
import { escapeHidden } from '../../core/visible.ts';
import { useAct } from '../api/act.ts';
import type { LastAttempt } from '../api/act-key.ts';
import { call } from '../api/client.ts';
import { useSession } from '../api/session.ts';
import { Button } from '../ui/button.tsx';
import { type SetDraft, unlessSent, useDraft } from '../ui/drafts.ts';
import { inputClass } from '../ui/field.tsx';
import { hasModifier, isComposing } from '../ui/keys.ts';
import { ActionError } from '../ui/states.tsx';
import { isMessageSent, type ReviewView } from './review-view.ts';

/** The message: a draft until it is sent. */
export interface RejectionDraft {
  text: string;
  setText: SetDraft;
  /** The last attempt to send it as a prompt. */
  last: LastAttempt;
  /** For each answer that the user sends: its message, or an empty text. */
  setSent: (message: string) => void;
}

export function useRejectionDraft(
  review: Pick<ReviewView, 'review_id' | 'settled' | 'options'>,
): RejectionDraft {
  const me = useSession()?.user.username ?? null;
  const [text, setText, last] = useDraft(`reject.${review.review_id}`);
  const [last_sent, setSent] = useDraft(`reject.${review.review_id}.sent`);
  const is_sent = isMessageSent(review, me, { text, last_sent });
  const is_over = review.settled !== null && (is_sent || text === '');
  useEffect(() => {
    if (is_sent) setText('');
    if (is_over) setSent('');
  }, [is_sent, is_over, setText, setSent]);
  return { text: is_sent ? '' : text, setText, last, setSent };
}

export function RejectForm({
  draft: { text, setText },
  option,
  disabled,
  onSend,
  onClose,
}: {
  draft: RejectionDraft;
  option: Option;
  disabled: boolean;
  onSend: (message: string) => void;
  onClose: () => void;
}) {
  const id = useId();
  const message = text.trim();
  const send = () => {
    if (message !== '' && !disabled) onSend(message);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || !hasModifier(event.nativeEvent) || isComposing(event.nativeEvent)) return;
    event.preventDefault();
    send();
  };
  return (
    <div className="flex flex-col gap-1.5">
      <label htmlFor={id} className="text-muted text-sm">
        Message, sent as the next prompt
      </label>
      <textarea
        id={id}
        dir="auto"
        // biome-ignore lint/a11y/noAutofocus: the user asked for this field
        autoFocus
        rows={Math.min(6, Math.max(2, text.split('\n').length))}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
        placeholder="What should it do instead?"
        className={`${inputClass} resize-none text-prose`}
      />
      <div className="flex flex-wrap gap-2">
        <Button variant="primary" disabled={message === '' || disabled} onClick={send}>
          <span>
            <bdi>{escapeHidden(option.name)}</bdi> and send
          </span>
        </Button>
        <Button variant="quiet" onClick={onClose}>
          Back
        </Button>
      </div>
    </div>
  );
}

/** The message for a review whose card is gone. */
export function UnsentDraft({ review }: { review: ReviewView }) {
  return <UnsentMessage agent_id={review.agent_id} draft={useRejectionDraft(review)} />;
}

/** A message that was not sent: somebody else answered first, or the user answered without it. */
export function UnsentMessage({
  agent_id,
  draft: { text, setText, last },
}: {
  agent_id: string;
  draft: RejectionDraft;
}) {
  const send = useAct(
    (text: string, idempotency_key) =>
      call('promptAgent', { params: { agent_id }, body: { text }, idempotency_key }),
    (_, sent) => setText(unlessSent(sent)),
    last,
  );
  if (text.trim() === '') return null;
  return (
    <div className="flex w-full flex-col gap-1.5 py-1">
      <p>Your message was not sent:</p>
      <p className="whitespace-pre-wrap break-words text-muted">{text}</p>
      <div className="flex gap-2">
        <Button busy={send.isPending} onClick={() => send.mutate(text)}>
          Send it as a prompt
        </Button>
        <Button variant="quiet" onClick={() => setText('')}>
          Discard
        </Button>
      </div>
      <ActionError error={send.error} />
    </div>
  );
}
