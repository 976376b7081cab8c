/** The user's mail from all runs: the messages that they have not acknowledged, newest first. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useAct } from '../../api/act.ts';
import { call } from '../../api/client.ts';
import { runQuery, teamsQuery } from '../../api/queries.ts';
import { useSession } from '../../api/session.ts';
import { NO_ROW_KEYS } from '../../shell/list-keys.ts';
import { Button, buttonClass } from '../../ui/button.tsx';
import { unlessSent, useDraft } from '../../ui/drafts.ts';
import { MessageArea } from '../../ui/message-area.tsx';
import { guardMovedRows } from '../../ui/moved-rows.ts';
import { useOnline } from '../../ui/online.ts';
import { Screen } from '../../ui/screen.tsx';
import { ActionError, Empty, QueryState } from '../../ui/states.tsx';
import { Ago } from '../../ui/time.tsx';
import { actorName } from './actors.ts';
import { keys } from './keys.ts';
import { INBOX_MAX, inboxQuery, type MailRecord, ownTriggersQuery } from './queries.ts';
import { mailText } from './text.ts';
import { NoTriggers, TriggerList, useMailOfTriggers } from './trigger-list.tsx';

export function Mail() {
  const username = useSession()?.user.username;
  const read = useQuery(inboxQuery(username));
  return (
    <Screen title="Mail" rowKeys={NO_ROW_KEYS}>
      <QueryState read={read}>
        {(messages) =>
          messages.length === 0 ? (
            <Empty
              title="No mail. Members of your teams write here. Acknowledged messages stay on the page of their run."
              cli="svc mail ls"
              operation="listMail"
            >
              <Link to="/runs" search={{}} className={buttonClass()}>
                Open runs
              </Link>
            </Empty>
          ) : (
            <>
              <ol ref={guardMovedRows}>
                {messages.toReversed().map((message) => (
                  <Message key={message.id} message={message} />
                ))}
              </ol>
              {messages.length === INBOX_MAX && (
                <p className="px-3 py-2 text-muted md:px-4">Acknowledge messages to see newer ones.</p>
              )}
            </>
          )
        }
      </QueryState>
      <OwnTriggers username={username} />
    </Screen>
  );
}

/** The user's time triggers in all runs. */
function OwnTriggers({ username }: { username: string | undefined }) {
  const triggers = useQuery(ownTriggersQuery(username));
  useMailOfTriggers(triggers.data);
  return (
    <section
      aria-label="Your time triggers"
      className="m-3 min-w-0 max-w-page rounded-md border border-line md:m-4"
    >
      <h2 className="border-line border-b px-3 py-1.5 font-medium">Your time triggers</h2>
      <QueryState read={triggers} rows={1}>
        {(items) =>
          items.length === 0 ? (
            <NoTriggers>
              No triggers yet. A trigger sends mail to you once or on a schedule. Add one on the page of a{' '}
              <Link to="/runs" search={{}} className="underline">
                run
              </Link>
              .
            </NoTriggers>
          ) : (
            <TriggerList
              triggers={items}
              mayDelete={() => true}
              about={({ run_id }) => <RunLink run_id={run_id} />}
            />
          )
        }
      </QueryState>
    </section>
  );
}

function Message({ message }: { message: MailRecord }) {
  const { id, from_actor_id, created_at, payload } = message;
  const [replies, setReplies] = useState(false);
  const from = actorName(from_actor_id);
  return (
    <li data-row={id} className="flex min-w-0 flex-col gap-1 border-line border-b px-3 py-2 md:px-4">
      <p className="flex flex-wrap items-center gap-x-2">
        <b className="max-w-60 truncate font-medium" title={from_actor_id}>
          {from}
        </b>
        <RunLink run_id={message.run_id} />
        <span className="ml-auto text-muted text-sm">
          <Ago at={created_at} />
        </span>
      </p>
      <p dir="auto" className="max-h-80 max-w-3xl overflow-y-auto whitespace-pre-wrap break-words text-prose">
        {mailText(payload)}
      </p>
      <div className="flex flex-wrap items-center gap-2">
        <Acknowledge message={message} />
        <Button aria-expanded={replies} onClick={() => setReplies(!replies)}>
          Reply
        </Button>
      </div>
      {replies && <Reply key={id} message={message} />}
    </li>
  );
}

function RunLink({ run_id }: { run_id: string }) {
  const { data: run } = useQuery(runQuery(run_id));
  const { data: teams = [] } = useQuery(teamsQuery);
  if (!run) return null;
  const team = teams.find(({ id }) => id === run.team_id);
  return (
    <Link
      to="/teams/$team_id/runs/$run_id"
      params={{ team_id: run.team_id, run_id }}
      search={{}}
      className="tap inline-flex items-center text-muted text-sm hover:underline"
    >
      {team && `${team.name} · `}run {run.number}
    </Link>
  );
}

function Acknowledge({ message }: { message: MailRecord }) {
  const online = useOnline();
  const refetch = useRefetch(message);
  const ack = useAct((message_id: string) => call('ackMail', { params: { message_id } }), refetch);
  return (
    <>
      <Button busy={ack.isPending} disabled={!online} onClick={() => ack.mutate(String(message.id))}>
        {ack.isPending ? 'Acknowledging…' : 'Acknowledge'}
      </Button>
      <ActionError error={ack.error} />
    </>
  );
}

/** Sends a reply, which also acknowledges the message. */
function Reply({ message }: { message: MailRecord }) {
  const online = useOnline();
  const [text, setText, last] = useDraft(`mail.reply.${message.id}`);
  const refetch = useRefetch(message);
  const send = useAct(
    (body: string, idempotency_key) => reply(message, body, idempotency_key),
    (_, body) => {
      setText(unlessSent(body));
      refetch();
    },
    last,
  );
  const is_empty = text.trim() === '';
  const submit = () => {
    if (!send.isPending && online && !is_empty) send.mutate(text);
  };
  return (
    <form
      aria-label={`Reply to ${actorName(message.from_actor_id)}`}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      className="flex max-w-3xl flex-col gap-1"
    >
      <div className="flex items-end gap-2">
        <MessageArea text={text} onText={setText} onSend={submit} />
        <Button type="submit" variant="primary" busy={send.isPending} disabled={!online || is_empty}>
          {send.isPending ? 'Sending…' : 'Send reply'}
        </Button>
      </div>
      <ActionError error={send.error} />
    </form>
  );
}

/** Throws if the reply cannot be delivered, for example because the run is over. */
async function reply(
  { id, run_id, from_actor_id, to_actor_id }: MailRecord,
  text: string,
  idempotency_key: string,
) {
  const body = { run_id, from_actor_id: to_actor_id, to_actor_id: from_actor_id, payload: { text } };
  const sent = await call('sendMail', { body, idempotency_key });
  if (sent.status === 'dead_letter') throw new Error(`Not delivered: ${sent.reason}`);
  await call('ackMail', { params: { message_id: String(id) } });
}

/** Reads the inbox and the mail of the message's run again. */
function useRefetch({ run_id }: MailRecord): () => void {
  const queries = useQueryClient();
  return () => {
    void queries.invalidateQueries({ queryKey: keys.inbox });
    void queries.invalidateQueries({ queryKey: keys.run_mail(run_id) });
  };
}
