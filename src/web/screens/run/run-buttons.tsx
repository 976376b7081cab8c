/** What a person can say to a run, by what it is doing. */
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call, wordsOf } from '../../api/client.ts';
import type { RunRecord } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { useOnline } from '../../ui/online.ts';
import { Refused } from '../../ui/states.tsx';
import { tell } from '../../ui/toast.tsx';
import { useAct } from './act.ts';
import { type RunWord, wordsFor } from './facts.ts';
import { type Worded, Wording } from './wording.tsx';

const labels: Record<RunWord, string> = {
  cancel: 'Cancel',
  resume: 'Resume',
  restart: 'Restart',
  complete: 'Complete…',
  fail: 'Fail…',
};
const said: Record<RunWord, string> = {
  cancel: 'Cancelling…',
  resume: 'Resuming…',
  restart: 'Restarting…',
  complete: 'Completing…',
  fail: 'Failing…',
};

interface Saying {
  word: RunWord;
  output?: unknown;
  error_text?: string;
}

export function RunButtons({ run, steps, ready }: { run: RunRecord; steps: number; ready: boolean }) {
  const queries = useQueryClient();
  const online = useOnline();
  const [asking, setAsking] = useState<RunWord | null>(null);
  const act = useAct(
    (saying: Saying, idempotency_key) => say(run, saying, idempotency_key),
    (record, { word }) => {
      setAsking(null);
      queries.setQueryData(['run', run.id], record);
      void queries.invalidateQueries({ queryKey: ['steps', run.id] });
      void queries.invalidateQueries({ queryKey: ['runs', run.team_id] });
      if (word === 'resume' || word === 'restart') tell(`Run ${run.number} goes on`);
    },
  );
  const busy = act.isPending ? act.variables.word : null;
  // Whether somebody leads from outside is known once the steps are.
  const words = ready ? wordsFor(run, steps) : [];
  const press = (word: RunWord) => {
    act.reset();
    if (word === 'complete' || word === 'fail' || word === 'cancel') setAsking(word);
    else act.mutate({ word });
  };
  return (
    <>
      {act.error && asking === null && (
        <span role="alert" className="text-failed text-sm">
          {wordsOf(act.error)}
        </span>
      )}
      {words.map((word, at) => (
        <Button
          key={word}
          look={word === 'cancel' || word === 'fail' ? 'danger' : at === 0 ? 'primary' : 'plain'}
          busy={busy === word}
          disabled={busy !== null || !online}
          title={online ? undefined : 'You are offline'}
          onClick={() => press(word)}
        >
          {busy === word ? said[word] : labels[word]}
        </Button>
      ))}
      <Dialog
        open={asking === 'cancel'}
        onClose={() => setAsking(null)}
        title={`Cancel run ${run.number}?`}
        description="Whatever of it goes on is ended. It can be resumed from what did not complete."
      >
        <div className="flex flex-col gap-3">
          <Refused error={act.error} />
          <div className="flex justify-end gap-2">
            <Button onClick={() => setAsking(null)}>Keep it going</Button>
            <Button look="danger" busy={busy === 'cancel'} onClick={() => act.mutate({ word: 'cancel' })}>
              {busy === 'cancel' ? 'Cancelling…' : 'Cancel run'}
            </Button>
          </div>
        </div>
      </Dialog>
      <Dialog
        open={asking === 'complete' || asking === 'fail'}
        onClose={() => setAsking(null)}
        title={asking === 'fail' ? `Fail run ${run.number}` : `Complete run ${run.number}`}
      >
        <Wording
          key={asking}
          kind={asking === 'fail' ? 'fail' : 'complete'}
          draft={`run-${asking}.${run.id}`}
          busy={act.isPending}
          error={act.error}
          onSay={(worded) => act.mutateAsync({ word: asking!, ...worded })}
        />
      </Dialog>
    </>
  );
}

function say({ team_id, id: run_id }: RunRecord, { word, ...worded }: Saying, idempotency_key: string) {
  const params = { team_id, run_id };
  const { output, error_text = '' }: Worded = worded;
  switch (word) {
    case 'cancel':
      return call('cancelRun', { params, idempotency_key });
    case 'resume':
      return call('resumeRun', { params, idempotency_key });
    case 'restart':
      return call('restartRun', { params, idempotency_key });
    case 'complete':
      return call('completeRun', { params, body: { output }, idempotency_key });
    case 'fail':
      return call('failRun', { params, body: { error_text }, idempotency_key });
  }
}
