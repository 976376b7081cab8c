/** One message of a thread: sender, receiver, the message it answers, its text and its actions. */
import { CornerDownRight } from 'lucide-react';
import { useSession } from '../../api/session.ts';
import { Button } from '../../ui/button.tsx';
import { Disclosure } from '../../ui/disclosure.tsx';
import { Clock } from '../../ui/time.tsx';
import type { TaskRecord } from './data.ts';
import { useMessage } from './data.ts';
import {
  excerpt,
  formatReceiver,
  type MessageRecord,
  payloadRest,
  pieces,
  shortActorName,
} from './thread.ts';

export function Message({
  task,
  message,
  answered,
  onAnswer,
  onThread,
}: {
  task: TaskRecord;
  message: MessageRecord;
  /** The message it answers, if that is on the page. */
  answered: MessageRecord | null;
  onAnswer: (message: MessageRecord) => void;
  onThread: (message_id: number) => void;
}) {
  const me = useSession()?.user.username;
  const from = shortActorName(message.from_actor_id);
  const is_mine = message.from_actor_id === `user:${me}`;
  const rest = payloadRest(message);
  return (
    <li data-message={message.id} className="min-w-0">
      <div className="flex flex-wrap items-baseline gap-x-2">
        <span className="font-medium">{is_mine ? 'You' : from}</span>
        <span className="text-muted text-sm">
          <span aria-hidden>→ </span>
          <span className="sr-only">to </span>
          {formatReceiver(message)}
        </span>
        <span className="ml-auto text-muted text-sm">
          <Clock at={message.created_at} />
        </span>
      </div>
      {message.reply_to !== null && (
        <Answered task={task} message_id={message.reply_to} known={answered} onThread={onThread} />
      )}
      {message.text !== null && (
        <p dir="auto" className="whitespace-pre-wrap break-words text-prose">
          {pieces(message.text).map(({ at, text, href }) =>
            href === null ? (
              text
            ) : (
              <a
                key={at}
                href={href}
                rel="noreferrer noopener"
                target="_blank"
                className="break-all underline"
              >
                {text}
              </a>
            ),
          )}
        </p>
      )}
      {rest !== null && (
        <Disclosure summary={message.text === null ? 'Data' : 'More data'}>
          <pre className="max-h-80 overflow-auto whitespace-pre-wrap break-words rounded bg-surface p-2 font-mono text-sm">
            {rest}
          </pre>
        </Disclosure>
      )}
      <div className="-ml-2.5 flex flex-wrap items-center text-muted text-sm">
        <Button
          variant="quiet"
          className="text-sm"
          aria-label={`Reply to ${from}: ${excerpt(message)}`}
          onClick={() => onAnswer(message)}
        >
          Reply
        </Button>
        {message.thread !== message.id && (
          <Button variant="quiet" className="text-sm" onClick={() => onThread(message.thread)}>
            Show thread
          </Button>
        )}
        {!message.delivered && <span className="px-2.5">Delivered with the next run</span>}
      </div>
    </li>
  );
}

function Answered({
  task,
  message_id,
  known,
  onThread,
}: {
  task: TaskRecord;
  message_id: number;
  known: MessageRecord | null;
  onThread: (message_id: number) => void;
}) {
  const read = useMessage(task, message_id, known === null);
  const answered = known ?? read;
  const go = () => {
    const target = document.querySelector(`[data-message="${message_id}"]`);
    if (target) target.scrollIntoView({ block: 'center' });
    else onThread(message_id);
  };
  return (
    <button
      type="button"
      onClick={go}
      className="tap flex max-w-full items-center gap-1 text-left text-muted text-sm hover:underline"
    >
      <CornerDownRight aria-hidden className="size-3.5 shrink-0" />
      <span className="truncate">
        {answered
          ? `${shortActorName(answered.from_actor_id)}: ${excerpt(answered)}`
          : `Reply to message ${message_id}`}
      </span>
    </button>
  );
}
