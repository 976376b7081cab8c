/** The mailbox of a run: messages between its actors, and their delivery state. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { ArrowRight, Check, CheckCheck, Circle, type LucideIcon, MailX } from 'lucide-react';
import { useRef, useState } from 'react';
import { useAct } from '../../api/act.ts';
import { call, type ItemOf } from '../../api/client.ts';
import { keys as shared_keys } from '../../api/keys.ts';
import type { RunRecord } from '../../api/queries.ts';
import { useSession } from '../../api/session.ts';
import type { RunPanelProps } from '../../feature.ts';
import { table } from '../../table.ts';
import { Button } from '../../ui/button.tsx';
import { guardMovedRows } from '../../ui/moved-rows.ts';
import { useOnline } from '../../ui/online.ts';
import { ActionError, QueryState } from '../../ui/states.tsx';
import { Clock } from '../../ui/time.tsx';
import { actorName, listActors, listSenders } from './actors.ts';
import { type MailAddresses, MailComposer } from './composer.tsx';
import { keys } from './keys.ts';
import { mailQuery, runMailQuery } from './queries.ts';
import { mailText } from './text.ts';

type MailHead = ItemOf<'listRunMail'>;

const FIRST = 30;

const looks = table<{ icon: LucideIcon; word: string; color: string }>({
  pending: { icon: Circle, word: 'pending', color: 'text-muted' },
  delivered: { icon: Check, word: 'delivered', color: 'text-running' },
  acknowledged: { icon: CheckCheck, word: 'acknowledged', color: 'text-completed' },
  dead_letter: { icon: MailX, word: 'dead letter', color: 'text-failed' },
});

export function RunMail({ run, live, members, member_id, onUse }: RunPanelProps) {
  const pending = members
    ? new Map([members.leader, ...members.members].map((item) => [item.actor_id, item.pending_messages]))
    : new Map<string, number>();
  const waiting = [...pending.values()].reduce((sum, count) => sum + count, 0);
  const [ends, setEnds] = useState<MailAddresses>({});
  const area = useRef<HTMLTextAreaElement>(null);
  const reply = ({ from_actor_id, to_actor_id }: MailHead) => {
    setEnds({ from: to_actor_id, to: from_actor_id });
    area.current?.focus();
  };
  const senders = listSenders(run, useSession()?.user.username);
  const actors = listActors(run, members);
  return (
    <section aria-label="Mailbox" className="min-w-0 rounded-md border border-line">
      <h2 className="border-line border-b px-3 py-1.5 font-medium">
        Mailbox {waiting > 0 && <span className="font-normal text-muted">{waiting} unacknowledged</span>}
      </h2>
      <RunMailList run={run} live={live} senders={senders} {...(live && { onReply: reply })} />
      {live && senders[0] !== undefined && (
        <MailComposer
          {...{ run, senders, actors, ends, area, onUse }}
          shown={member_id === undefined ? undefined : `${member_id}@${run.team_id}`}
          onEnds={setEnds}
        />
      )}
    </section>
  );
}

/** All mail of a run, or that of one actor. `senders`: the actors that the user may act as. */
export function RunMailList({
  run,
  live,
  actor_id,
  senders = [],
  onReply,
}: {
  run: RunRecord;
  live: boolean;
  actor_id?: string;
  senders?: string[];
  onReply?: (message: MailHead) => void;
}) {
  const mail = useQuery(runMailQuery(run.id, live));
  const [shown, setShown] = useState(FIRST);
  return (
    <QueryState read={mail} rows={2}>
      {(all) => {
        const heads =
          actor_id === undefined
            ? all
            : all.filter((item) => item.from_actor_id === actor_id || item.to_actor_id === actor_id);
        if (heads.length === 0) return <p className="px-3 py-6 text-center text-muted">No mail yet.</p>;
        return (
          <div className="scroll-y max-h-80">
            {heads.length > shown && (
              <div className="flex justify-center p-2">
                <Button onClick={() => setShown(shown + FIRST)}>Show earlier</Button>
              </div>
            )}
            <ol ref={guardMovedRows}>
              {heads.slice(-shown).map((head) => (
                <MailRow
                  key={head.id}
                  head={head}
                  mine={senders.includes(head.to_actor_id)}
                  onReply={onReply}
                />
              ))}
            </ol>
          </div>
        );
      }}
    </QueryState>
  );
}

function MailRow({
  head,
  mine,
  onReply,
}: {
  head: MailHead;
  mine: boolean;
  onReply: ((message: MailHead) => void) | undefined;
}) {
  const { data, error } = useQuery(mailQuery(head.id));
  const { icon: Icon, word, color } = looks[head.status] ?? looks.pending!;
  return (
    <li data-row={head.id} className="min-w-0 border-line border-t px-3 py-1.5 first:border-t-0">
      <p className="flex flex-wrap items-center gap-x-1.5 text-sm">
        <span className="text-muted">
          <Clock at={head.created_at} />
        </span>
        <b className="max-w-40 truncate font-medium" title={head.from_actor_id}>
          {actorName(head.from_actor_id)}
        </b>
        <ArrowRight aria-label="to" className="size-3 text-muted" />
        <b className="max-w-40 truncate font-medium" title={head.to_actor_id}>
          {actorName(head.to_actor_id)}
        </b>
        <span className={`ml-auto inline-flex items-center gap-1 ${color}`}>
          <Icon aria-hidden className="size-3.5" />
          {word}
        </span>
      </p>
      <p dir="auto" className="max-h-40 overflow-y-auto whitespace-pre-wrap break-words">
        {data ? mailText(data.payload) : error ? 'This message could not be loaded.' : ' '}
      </p>
      {head.reason && <p className="break-words text-failed text-sm">{head.reason}</p>}
      {mine && (
        <div className="flex flex-wrap items-center gap-2 py-1">
          {onReply && <Button onClick={() => onReply(head)}>Reply</Button>}
          {head.status !== 'acknowledged' && head.status !== 'dead_letter' && <AckButton head={head} />}
        </div>
      )}
    </li>
  );
}

function AckButton({ head }: { head: MailHead }) {
  const queries = useQueryClient();
  const online = useOnline();
  const ack = useAct(
    (message_id: string) => call('ackMail', { params: { message_id } }),
    () => {
      void queries.invalidateQueries({ queryKey: keys.run_mail(head.run_id) });
      void queries.invalidateQueries({ queryKey: keys.inbox });
      void queries.invalidateQueries({ queryKey: shared_keys.run_members(head.run_id) });
    },
  );
  return (
    <>
      <Button busy={ack.isPending} disabled={!online} onClick={() => ack.mutate(String(head.id))}>
        {ack.isPending ? 'Acknowledging…' : 'Acknowledge'}
      </Button>
      <ActionError error={ack.error} />
    </>
  );
}
