/** The form that sends a message to a task's thread. The text is kept as a draft until it is sent. */
import { X } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import type { SentBody } from '../../../api/route.ts';
import type { RouteOf } from '../../../api/routes.ts';
import { useAct } from '../../api/act.ts';
import { call, errorMessage } from '../../api/client.ts';
import type { TeamRecord } from '../../api/queries.ts';
import { Button, IconButton } from '../../ui/button.tsx';
import { pillClass } from '../../ui/chip.tsx';
import { cx } from '../../ui/cx.ts';
import { unlessSent, useDraft } from '../../ui/drafts.ts';
import { MessageArea } from '../../ui/message-area.tsx';
import { useOnline } from '../../ui/online.ts';
import { Select } from '../../ui/select.tsx';
import type { TaskRecord } from './data.ts';
import {
  composerFieldFor,
  excerpt,
  type MessageRecord,
  type MessageRoute,
  receivers,
  shortActorName,
} from './thread.ts';

const routes: readonly { route: MessageRoute; label: string }[] = [
  { route: 'to_leader', label: 'Leader' },
  { route: 'to_member', label: 'Member' },
  { route: 'broadcast', label: 'Everyone' },
];

export function Composer({
  task,
  team,
  answered,
  onAnswer,
  onSent,
}: {
  task: TaskRecord;
  team: TeamRecord;
  answered: MessageRecord | null;
  onAnswer: (message: MessageRecord | null) => void;
  onSent: (message: MessageRecord) => void;
}) {
  const [text, setText, last] = useDraft(`task.${task.id}`);
  const [route, setRoute] = useState<MessageRoute>(
    team.spec.leader_member_id === null ? 'broadcast' : 'to_leader',
  );
  const [member, setMember] = useState('');
  const area = useRef<HTMLTextAreaElement>(null);
  const is_offline = !useOnline();
  const reply_to = answered?.id;
  useEffect(() => {
    if (reply_to !== undefined) area.current?.focus();
  }, [reply_to]);

  const send = useAct(
    (body: SentBody<RouteOf<'sendMessage'>> & { text: string }, idempotency_key) => {
      const params = { team_id: task.team_id, task_id: task.id };
      return call('sendMessage', { params, body, idempotency_key });
    },
    (message, sent) => {
      // Keep the text if the user continued to type.
      setText(unlessSent(sent.text));
      onSent(message);
    },
    last,
  );
  const submit = () => {
    if (send.isPending || is_offline || text.trim() === '') return;
    send.mutate({
      ...{ route, text },
      ...(route === 'to_member' && { to_actor_id: member }),
      ...(reply_to !== undefined && { reply_to }),
    });
  };
  const error_message = send.error ? errorMessage(send.error) : null;
  const place = error_message === null ? null : composerFieldFor(error_message);
  const wrong = (field: typeof place) =>
    place === field ? { 'aria-invalid': true as const, 'aria-describedby': `said-${field}-${task.id}` } : {};
  const said = (field: typeof place) =>
    place === field && (
      <p id={`said-${field}-${task.id}`} role="alert" className="break-words text-failed text-sm">
        {error_message}
      </p>
    );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      className="flex shrink-0 flex-col gap-2 border-line border-t p-3"
    >
      {answered && (
        <p className="flex items-center gap-1 text-muted text-sm">
          <span className="min-w-0 truncate">
            Reply to {shortActorName(answered.from_actor_id)}: {excerpt(answered)}
          </span>
          <IconButton label="Cancel reply" icon={<X aria-hidden />} onClick={() => onAnswer(null)} />
        </p>
      )}
      <div className="flex flex-wrap items-center gap-2">
        <fieldset className="flex flex-wrap items-center gap-1" {...wrong('route')}>
          <legend className="sr-only">To</legend>
          {routes.map((each) => (
            <label
              key={each.route}
              className={cx(
                pillClass(route === each.route),
                'cursor-pointer has-focus-visible:outline-2 has-focus-visible:outline-accent',
              )}
            >
              <input
                type="radio"
                name={`route-${task.id}`}
                value={each.route}
                checked={route === each.route}
                onChange={() => setRoute(each.route)}
                className="sr-only"
              />
              {each.label}
            </label>
          ))}
        </fieldset>
        {route === 'to_member' && (
          <span className="w-40">
            <Select
              aria-label="Member"
              {...wrong('member')}
              value={member}
              onChange={setMember}
              choices={[
                { value: '', label: 'Choose a member' },
                ...receivers(team).map((id) => ({ value: id, label: shortActorName(id) })),
              ]}
            />
          </span>
        )}
      </div>
      {said('route')}
      {said('member')}
      <div className="flex items-end gap-2">
        <MessageArea ref={area} {...wrong('text')} text={text} onText={setText} onSend={submit} />
        <Button
          type="submit"
          variant="primary"
          busy={send.isPending}
          disabled={is_offline || text.trim() === ''}
        >
          {send.isPending ? 'Sending…' : 'Send'}
        </Button>
      </div>
      {said('text')}
      {is_offline && (
        <p className="text-muted text-sm">You are offline. Your text is kept until you can send it.</p>
      )}
    </form>
  );
}
