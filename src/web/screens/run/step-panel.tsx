/** One step: what it was given, what came of it, and what a person can say to it. */
import { useQueryClient } from '@tanstack/react-query';
import { Ellipsis } from 'lucide-react';
import { useState } from 'react';
import { isRunOver } from '../../../features/runs/rules/run.ts';
import { call, wordsOf } from '../../api/client.ts';
import type { RunRecord } from '../../api/queries.ts';
import { Button, IconButton } from '../../ui/button.tsx';
import { Menu } from '../../ui/menu.tsx';
import { useOnline } from '../../ui/online.ts';
import { Status } from '../../ui/status.tsx';
import { Duration } from '../../ui/time.tsx';
import { tell } from '../../ui/toast.tsx';
import { useAct } from './act.ts';
import { type StepRecord, type StepWord, stepWords } from './facts.ts';
import { Json } from './value.tsx';
import { type Worded, Wording } from './wording.tsx';

const labels: Record<StepWord, string> = {
  start: 'Start',
  complete: 'Complete…',
  fail: 'Fail…',
  resume: 'Answer',
};
const done: Record<StepWord, string> = {
  start: 'is begun',
  complete: 'is completed',
  fail: 'has failed',
  resume: 'goes on',
};

type Saying = { word: StepWord } & Worded;

export function StepPanel({ run, step }: { run: RunRecord; step: StepRecord }) {
  const queries = useQueryClient();
  const online = useOnline();
  const [opened, setOpened] = useState<StepWord | null>(null);
  const act = useAct(
    (saying: Saying, idempotency_key) => say(run, step.step_key, saying, idempotency_key),
    (record, { word }) => {
      setOpened(null);
      queries.setQueryData<StepRecord[]>(['steps', run.id], (steps) =>
        steps?.map((one) => (one.step_key === record.step_key ? record : one)),
      );
      // What follows from it is told after it.
      void queries.invalidateQueries({ queryKey: ['steps', run.id] });
      void queries.invalidateQueries({ queryKey: ['run', run.id] });
      tell(`${record.step_key} ${done[word]}`);
    },
  );
  const { often, seldom } = isRunOver(run) ? { often: [], seldom: [] } : stepWords(step, run.spec);
  const press = (word: StepWord) => {
    act.reset();
    if (word === 'start') act.mutate({ word });
    else setOpened(word);
  };
  // Who is asked sees where to answer.
  const open = opened ?? (often.includes('resume') ? 'resume' : null);
  return (
    <section
      aria-label={`Step ${step.step_key}`}
      className="flex min-w-0 flex-col gap-2 rounded-md border border-line p-3"
    >
      <header className="flex flex-wrap items-center justify-between gap-2">
        <h2 className="min-w-0 truncate font-medium" title={step.step_key}>
          {step.step_key}
        </h2>
        <span className="flex items-center gap-2 text-sm">
          <Status status={step.status} />
          {step.started_at && <Duration from={step.started_at} to={step.ended_at} />}
          {step.max_attempts > 1 && step.attempt > 0 && (
            <span className="text-muted">
              attempt {step.attempt}/{step.max_attempts}
            </span>
          )}
        </span>
      </header>
      {step.prompt && (
        <p className="max-h-40 overflow-y-auto whitespace-pre-wrap break-words">{step.prompt}</p>
      )}
      {(step.depends_on.length > 0 || step.when === 'always') && (
        <p className="break-words text-muted text-sm">
          {step.depends_on.length > 0 && <>after {step.depends_on.slice(0, 20).join(', ')}</>}
          {step.depends_on.length > 20 && ` and ${step.depends_on.length - 20} more`}
          {step.when === 'always' && ', whatever came of it'}
        </p>
      )}
      {step.error_text && (
        <p
          className={`max-h-40 overflow-y-auto whitespace-pre-wrap break-words rounded px-2 py-1 ${
            step.status === 'input_required' ? 'bg-marked' : 'bg-removed text-failed'
          }`}
        >
          {step.error_text}
        </p>
      )}
      {often.length + seldom.length > 0 && (
        <div className="flex flex-wrap items-center gap-2">
          {often
            .filter((word) => word !== 'resume')
            .map((word, at) => (
              <Button
                key={word}
                look={word === 'fail' ? 'danger' : at === 0 ? 'primary' : 'plain'}
                busy={act.isPending && act.variables.word === word}
                disabled={act.isPending || !online}
                title={online ? undefined : 'You are offline'}
                aria-expanded={word === 'start' ? undefined : open === word}
                onClick={() => press(word)}
              >
                {labels[word]}
              </Button>
            ))}
          {seldom.length > 0 && (
            <Menu
              trigger={<IconButton label="More for this step" icon={<Ellipsis aria-hidden />} />}
              items={seldom.map((word) => ({
                label: word === 'complete' ? 'Complete by hand…' : 'Fail…',
                danger: word === 'fail',
                onSelect: () => press(word),
              }))}
            />
          )}
        </div>
      )}
      {open && open !== 'start' ? (
        <Wording
          key={open}
          kind={open}
          draft={`step-${open}.${run.id}.${step.step_key}`}
          busy={act.isPending}
          error={act.error}
          onSay={(worded) => act.mutateAsync({ word: open, ...worded })}
        />
      ) : (
        act.error && (
          <p role="alert" className="text-failed">
            {wordsOf(act.error)}
          </p>
        )
      )}
      {step.output !== null && step.output !== undefined && <Json label="Output" value={step.output} open />}
      {step.input !== null && step.input !== undefined && <Json label="Input" value={step.input} />}
    </section>
  );
}

function say(run: RunRecord, step_key: string, { word, ...worded }: Saying, idempotency_key: string) {
  const params = { team_id: run.team_id, run_id: run.id, step_key };
  const { output, error_text = '', input }: Worded = worded;
  switch (word) {
    case 'start':
      return call('startStep', { params, idempotency_key });
    case 'complete':
      return call('completeStep', { params, body: { output }, idempotency_key });
    case 'fail':
      return call('failStep', { params, body: { error_text }, idempotency_key });
    case 'resume':
      return call('resumeStep', { params, body: { input }, idempotency_key });
  }
}
