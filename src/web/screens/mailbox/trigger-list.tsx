/** A list of time triggers, the next one first, each with a button that deletes it. */
import { useQueryClient } from '@tanstack/react-query';
import { Trash2 } from 'lucide-react';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { useAct } from '../../api/act.ts';
import { call } from '../../api/client.ts';
import { Button, IconButton } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { useOnline } from '../../ui/online.ts';
import { ActionError, ApiLink } from '../../ui/states.tsx';
import { Ago, TimeOfDay, Until } from '../../ui/time.tsx';
import { actorName } from './actors.ts';
import { keys } from './keys.ts';
import type { TriggerRecord } from './queries.ts';
import { scheduleText } from './schedule-text.ts';
import { mailText } from './text.ts';

export function TriggerList({
  triggers,
  mayDelete,
  about,
  className,
}: {
  triggers: readonly TriggerRecord[];
  mayDelete: (trigger: TriggerRecord) => boolean;
  /** Shown instead of who gets the mail. */
  about?: (trigger: TriggerRecord) => ReactNode;
  className?: string;
}) {
  const [deleting, setDeleting] = useState<TriggerRecord | null>(null);
  const sorted = triggers.toSorted((a, b) => Date.parse(a.next_at) - Date.parse(b.next_at));
  return (
    <>
      <ol className={className}>
        {sorted.map((trigger) => (
          <TriggerRow
            key={trigger.id}
            trigger={trigger}
            about={about?.(trigger)}
            onDelete={mayDelete(trigger) ? () => setDeleting(trigger) : undefined}
          />
        ))}
      </ol>
      {deleting && <DeleteDialog key={deleting.id} trigger={deleting} onClose={() => setDeleting(null)} />}
    </>
  );
}

/** Says what triggers are for, where there are none. */
export function NoTriggers({ children }: { children: ReactNode }) {
  return (
    <div className="flex flex-col items-center gap-3 px-3 py-6 text-center text-muted">
      <p>{children}</p>
      <ApiLink operation="setTrigger" />
    </div>
  );
}

function TriggerRow({
  trigger,
  about,
  onDelete,
}: {
  trigger: TriggerRecord;
  about: ReactNode;
  onDelete: (() => void) | undefined;
}) {
  const { actor_id, next_at, last_at, fired, payload } = trigger;
  const to = actorName(actor_id);
  return (
    <li className="flex min-w-0 items-start gap-2 border-line border-t px-3 py-1.5 first:border-t-0">
      <div className="min-w-0 flex-1">
        <p className="flex flex-wrap items-center gap-x-2 text-sm">
          {about ?? (
            <b className="max-w-40 truncate font-medium" title={actor_id}>
              {to}
            </b>
          )}
          <ScheduleLabel trigger={trigger} />
          <span className="text-muted">
            <Until at={next_at} /> · <TimeOfDay ts={Date.parse(next_at) / 1000} />
          </span>
        </p>
        <p dir="auto" className="max-h-40 overflow-y-auto whitespace-pre-wrap break-words">
          {mailText(payload)}
        </p>
        {last_at !== null && (
          <p className="text-muted text-sm">
            Fired {fired === 1 ? 'once' : `${fired} times`}, last <Ago at={last_at} />
          </p>
        )}
      </div>
      {onDelete && (
        <IconButton label={`Delete the trigger of ${to}`} icon={<Trash2 aria-hidden />} onClick={onDelete} />
      )}
    </li>
  );
}

function ScheduleLabel({ trigger }: { trigger: TriggerRecord }) {
  const schedule = scheduleText(trigger);
  if ('text' in schedule) return <span className="break-words">{schedule.text}</span>;
  return (
    <span className="min-w-0 break-words">
      <code className="font-mono text-sm">{schedule.code}</code>, {schedule.zone}
    </span>
  );
}

function DeleteDialog({ trigger, onClose }: { trigger: TriggerRecord; onClose: () => void }) {
  const online = useOnline();
  const refetch = useRefetchTriggers(trigger.run_id);
  const { actor_id, id: trigger_id } = trigger;
  const remove = useAct(
    () => call('deleteTrigger', { params: { actor_id, trigger_id } }),
    () => {
      refetch();
      onClose();
    },
  );
  return (
    <Dialog
      open
      onClose={onClose}
      title="Delete this trigger?"
      description={`${actorName(actor_id)} gets no more mail from it. Mail that it has already sent stays.`}
    >
      <div className="flex flex-col gap-3">
        <p className="line-clamp-4 whitespace-pre-wrap break-words">{mailText(trigger.payload)}</p>
        <p className="text-muted">
          <ScheduleLabel trigger={trigger} />, next <Until at={trigger.next_at} />
        </p>
        <ActionError error={remove.error} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button
            variant="danger"
            busy={remove.isPending}
            disabled={!online}
            title={online ? undefined : 'You are offline'}
            onClick={() => remove.mutate(undefined)}
          >
            {remove.isPending ? 'Deleting…' : 'Delete trigger'}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

/** Reads the triggers of a run, and the user's own ones, again. */
export function useRefetchTriggers(run_id: string): () => void {
  const queries = useQueryClient();
  return () => {
    void queries.invalidateQueries({ queryKey: keys.run_triggers(run_id) });
    void queries.invalidateQueries({ queryKey: keys.own_triggers });
  };
}

/** Reads mail again after a trigger has fired. */
export function useMailOfTriggers(triggers: readonly TriggerRecord[] | undefined): void {
  const queries = useQueryClient();
  // A trigger that fires once is gone afterwards.
  const state = triggers?.map(({ id, fired }) => `${id}:${fired}`).join();
  const last = useRef(state);
  useEffect(() => {
    if (last.current !== undefined && last.current !== state) {
      void queries.invalidateQueries({ queryKey: keys.inbox });
      void queries.invalidateQueries({ queryKey: keys.all_run_mail });
    }
    last.current = state;
  }, [state, queries]);
}
