/** The time triggers of a run, and the button that adds one. */
import { useQuery } from '@tanstack/react-query';
import { lazy, useState } from 'react';
import type { RunRecord } from '../../api/queries.ts';
import { useSession } from '../../api/session.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { QueryState } from '../../ui/states.tsx';
import type { MembersRecord } from '../run/facts.ts';
import { listActors, listSenders } from './actors.ts';
import { runTriggersQuery } from './queries.ts';
import { NoTriggers, TriggerList, useMailOfTriggers } from './trigger-list.tsx';

// Loaded when it is first opened, because it contains the library for cron patterns.
const AddTrigger = lazy(async () => ({ default: (await import('./add-trigger.tsx')).AddTrigger }));

export function RunTriggers({ run, members }: { run: RunRecord; members: MembersRecord | undefined }) {
  const triggers = useQuery(runTriggersQuery(run.id));
  useMailOfTriggers(triggers.data);
  const user = useSession()?.user;
  const own = listSenders(run, user?.username);
  // Root acts as anyone.
  const actors = user?.role === 'root' ? [...new Set([...own, ...listActors(run, members)])] : own;
  const [adding, setAdding] = useState(false);
  return (
    <section aria-label="Time triggers" className="min-w-0 rounded-md border border-line">
      <header className="flex flex-wrap items-center justify-between gap-2 border-line border-b px-3 py-1.5">
        <h2 className="font-medium">Time triggers</h2>
        {actors.length > 0 && <Button onClick={() => setAdding(true)}>Add trigger…</Button>}
      </header>
      <QueryState read={triggers} rows={1}>
        {(items) =>
          items.length === 0 ? (
            <NoTriggers>
              No triggers yet. A trigger sends mail to an actor of this run once or on a schedule.
            </NoTriggers>
          ) : (
            <TriggerList
              triggers={items}
              mayDelete={({ actor_id }) => user?.role === 'root' || own.includes(actor_id)}
              className="scroll-y max-h-80"
            />
          )
        }
      </QueryState>
      <Dialog
        open={adding}
        onClose={() => setAdding(false)}
        title={`Add a trigger to run ${run.number}`}
        description="It ends with the run."
      >
        <AddTrigger run={run} actors={actors} onAdded={() => setAdding(false)} />
      </Dialog>
    </section>
  );
}
